"""Which rules find the sentences and tokens of a text."""

from enum import StrEnum


class Language(StrEnum):
    """How a script shows where its words end."""

    EN = "en"
    """English, and any script that puts spaces between words."""

    ZH = "zh"
    """Chinese, whose words must be found."""
