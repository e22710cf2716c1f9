"""The languages with sentence and token rules; and a warning if Chinese is read as English."""

import re
import warnings
from enum import StrEnum

from elmore.errors import DataWarning

# Segmented text has words of up to four characters, and rarely a long name.
_LONG_RUN = re.compile(r"[\u3400-\u9fff]{10,}")


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


def warn_if_unsegmented(text: str) -> None:
    """Warn if `text`, which is split at spaces, contains Chinese without spaces between words."""
    if not text.isascii() and _LONG_RUN.search(text):
        warnings.warn(
            "the text contains Chinese without spaces between words, so whole clauses become "
            "tokens; to split it, choose the language zh (words) or zh-chars (characters): "
            "--language zh, for tasks --set task.language=zh, in Python language='zh'",
            DataWarning,
            stacklevel=1,  # the same place for all callers, so that it is shown once
        )
