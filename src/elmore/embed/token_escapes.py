r"""Escape tokens so that any characters in them can be stored in vector files.

HDF5 strings cannot hold NUL, UTF-8 cannot hold lone surrogates, and lines of tokens use tab and
newline as separators. All vector files use the same escapes; "\e" distinguishes [""] from [].
"""

import re
from collections.abc import Sequence

_ESCAPES = {"\\": r"\\", "\0": r"\0", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
_UNESCAPES = {escape[1]: character for character, escape in _ESCAPES.items()} | {"e": ""}
_ESCAPED = re.compile(r"\\(?:u([0-9a-f]{4})|(.))")
_TO_ESCAPE = re.compile("[\\\\\0\t\n\r\ud800-\udfff]")


def escape_token(token: str) -> str:
    r"""Escape NUL, tab, newline, carriage return and lone surrogates in a token.

    >>> print(escape_token("C:\\temp\t1"))
    C:\\temp\t1
    """
    if not token:
        return r"\e"
    return _TO_ESCAPE.sub(lambda match: _escape_character(match[0]), token)


def unescape_token(text: str) -> str:
    r"""Undo `escape_token`.

    >>> unescape_token(r"\ud83d") == chr(0xD83D)
    True
    """
    if "\\" not in text:
        return text
    return _ESCAPED.sub(
        lambda match: chr(int(match[1], 16)) if match[1] else _UNESCAPES[match[2]], text
    )


def escape_tokens(tokens: Sequence[str]) -> Sequence[str]:
    """Escape each token."""
    if all(tokens) and not _TO_ESCAPE.search("".join(tokens)):  # nearly always
        return tokens
    return [escape_token(token) for token in tokens]


def join_escaped(tokens: Sequence[str]) -> str:
    """Return a sentence as one line of escaped tokens, separated by tabs."""
    return "\t".join(escape_tokens(tokens))


def split_escaped(line: str) -> list[str]:
    """Undo `join_escaped`."""
    if not line:
        return []
    texts = line.split("\t")
    return [unescape_token(text) for text in texts] if "\\" in line else texts


def _escape_character(character: str) -> str:
    return _ESCAPES.get(character) or f"\\u{ord(character):04x}"
