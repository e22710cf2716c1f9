"""The languages with sentence and token rules."""

from enum import StrEnum


class Language(StrEnum):
    """Which rules split text into sentences and tokens."""

    EN = "en"
    """English, and any language written with spaces between words."""

    ZH = "zh"
    """Chinese, which needs word segmentation."""
