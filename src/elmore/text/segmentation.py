"""Notice Chinese text that is split as if it had spaces between words."""

import re
import warnings

from elmore.errors import DataWarning

# Segmented text has words of up to four characters, and rarely a long name.
_LONG_RUN = re.compile(r"[\u3400-\u9fff]{10,}")


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
