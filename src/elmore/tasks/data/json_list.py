"""A long list in a JSON file, one member at a time: the file need not fit into memory."""

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from elmore.errors import DataError
from elmore.text.files import open_text, read_bytes

_BYTES_AT_ONCE = 2**20
# One member of the list, or one value beside it; an article of SQuAD has under a million.
MAX_VALUE_CHARS = 2**26
_WHITESPACE = " \t\r\n"
# The longest escape and the longest literal, -Infinity, are no longer; cut off, they are an error
# so far before the end of what has been read.
_MAX_CUT_CHARS = 12


def read_json_list(path: Path, *, key: str) -> Iterator[Any]:
    """Yield the members of the list that a file's object has under `key`."""
    with open_text(path) as (_, stream):
        text = _JsonText(path, stream)
        text.take("{", wanted=f"an object with a list under {key!r}")
        is_found = False
        while text.peek() != "}":
            name = text.take_value()
            text.take(":", wanted="a colon after a name")
            if name == key:
                is_found = True
                yield from _read_members(text, key=key)
            else:
                text.take_value()
            if text.peek() != "}":
                text.take(",", wanted="a comma or the end of the object")
        if not is_found:
            raise DataError(
                f"{path} has nothing under {key!r}; give a file that has its list there"
            )


def _read_members(text: "_JsonText", *, key: str) -> Iterator[Any]:
    text.take("[", wanted=f"a list under {key!r}")
    while text.peek() != "]":
        yield text.take_value()
        if text.peek() != "]":
            text.take(",", wanted="a comma or the end of the list")
    text.take("]", wanted="the end of the list")


class _JsonText:
    """The part of a file that is being parsed; it grows at its end and is cut at its start."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self._path = path
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._parser = json.JSONDecoder()
        self._text = ""
        self._place = 0
        self._num_dropped = 0

    def peek(self) -> str:
        """Return the next character that is not whitespace; "" at the end."""
        while True:
            while self._place < len(self._text) and self._text[self._place] in _WHITESPACE:
                self._place += 1
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._grow():
                return ""

    def take(self, character: str, *, wanted: str) -> None:
        """Go past a character that must come next."""
        found = self.peek()
        if found != character:
            raise self._refuse(f"wanted {wanted}, got {found or 'the end'!r}", self._place)
        self._place += 1

    def take_value(self) -> Any:
        """Return the next value and go past it."""
        self.peek()
        while True:
            try:
                value, end = self._parser.raw_decode(self._text, self._place)
            except json.JSONDecodeError as error:
                is_cut = error.pos >= len(self._text) - _MAX_CUT_CHARS
                is_cut = is_cut or error.msg.startswith("Unterminated string")
                if not is_cut or not self._grow():
                    raise self._refuse(error.msg, error.pos) from None
            except ValueError:  # a number of thousands of digits
                raise self._refuse("a number is too long", self._place) from None
            except RecursionError:
                raise self._refuse("lists within lists are too deep", self._place) from None
            else:
                # A number may go on in what has not been read yet, even one before "e-".
                if end + 2 < len(self._text) or not self._grow():
                    self._place = end
                    return value

    def _grow(self) -> bool:
        """Read on, twice as much as is kept, so that parsing anew takes linear time in all."""
        num_kept = len(self._text) - self._place
        if num_kept > MAX_VALUE_CHARS:
            raise self._refuse(f"a value has over {MAX_VALUE_CHARS:,} characters", self._place)
        num_bytes = max(_BYTES_AT_ONCE, 2 * num_kept)
        chunk = read_bytes(self._stream, num_bytes, name=str(self._path))
        try:
            more = self._decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            bad_byte = error.object[error.start]
            raise DataError(
                f"{self._path}: byte 0x{bad_byte:02x}, some way after character "
                f"{self._num_dropped}, is not UTF-8; convert the file with iconv"
            ) from None
        if chunk:
            self._text = self._text[self._place :] + more
            self._num_dropped += self._place
            self._place = 0
        return bool(chunk)

    def _refuse(self, problem: str, place: int) -> DataError:
        return DataError(
            f"{self._path} is not the JSON wanted (character {self._num_dropped + place + 1}: "
            f"{problem}); fix the file, or give one of SQuAD's form"
        )
