"""The languages with sentence and token rules."""

from enum import StrEnum


class Language(StrEnum):
    """Which rules split text into sentences and tokens."""

    EN = "en"
    """English, and any language written with spaces between words."""

    ZH = "zh"
    """Chinese, segmented into words."""

    ZH_CHARS = "zh-chars"
    """Chinese, one character per token."""

    @property
    def is_chinese(self) -> bool:
        """Whether words are written without spaces between them."""
        return self is not Language.EN
