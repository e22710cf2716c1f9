"""Read a long list in a JSON file one member at a time, so that memory does not limit its size."""

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from elmore.errors import DataError
from elmore.text.files import open_text, read_bytes

_BYTES_AT_ONCE = 2**20
# For one member of the list or one other value; SQuAD's articles have less than a million.
MAX_VALUE_CHARS = 2**26
_WHITESPACE = " \t\r\n"
# No escape or literal (such as -Infinity) is longer. If one is cut off at the end of what has been
# read, the parser's error is at most this far before the end.
_MAX_CUT_CHARS = 12


def read_json_list(path: Path, *, key: str) -> Iterator[Any]:
    """Yield the members of the list under `key` in a file's object."""
    with open_text(path) as (_, stream):
        text = _JsonText(path, stream)
        text.take("{", expected=f"an object with a list under {key!r}")
        is_found = False
        while text.peek() != "}":
            name = text.take_value()
            text.take(":", expected="a colon after a name")
            if name == key:
                is_found = True
                yield from _read_members(text, key=key)
            else:
                text.take_value()
            if text.peek() != "}":
                text.take(",", expected="a comma or the end of the object")
        if not is_found:
            raise DataError(f"{path} has nothing under {key!r}; give a file with a list there")


def _read_members(text: "_JsonText", *, key: str) -> Iterator[Any]:
    text.take("[", expected=f"a list under {key!r}")
    while text.peek() != "]":
        yield text.take_value()
        if text.peek() != "]":
            text.take(",", expected="a comma or the end of the list")
    text.take("]", expected="the end of the list")


class _JsonText:
    """The part of a file that is being parsed; parsed text is dropped when more is read."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self._path = path
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._parser = json.JSONDecoder()
        self._text = ""
        self._offset = 0
        self._num_dropped = 0

    def peek(self) -> str:
        """Return the next character that is not whitespace; "" at the end."""
        while True:
            while self._offset < len(self._text) and self._text[self._offset] in _WHITESPACE:
                self._offset += 1
            if self._offset < len(self._text):
                return self._text[self._offset]
            if not self._grow():
                return ""

    def take(self, character: str, *, expected: str) -> None:
        """Skip a character that must come next."""
        found = self.peek()
        if found != character:
            raise self._refuse(f"expected {expected}, got {found or 'the end'!r}", self._offset)
        self._offset += 1

    def take_value(self) -> Any:
        """Return the next value and skip it."""
        self.peek()
        while True:
            try:
                value, end = self._parser.raw_decode(self._text, self._offset)
            except json.JSONDecodeError as error:
                is_cut = error.pos >= len(self._text) - _MAX_CUT_CHARS
                is_cut = is_cut or error.msg.startswith("Unterminated string")
                if not is_cut or not self._grow():
                    raise self._refuse(error.msg, error.pos) from None
            except ValueError:  # a number of thousands of digits
                raise self._refuse("a number is too long", self._offset) from None
            except RecursionError:
                raise self._refuse("lists are nested too deeply", self._offset) from None
            else:
                # A number may continue in text that has not been read yet, even after "e-".
                if end + 2 < len(self._text) or not self._grow():
                    self._offset = end
                    return value

    def _grow(self) -> bool:
        """Read twice as much as is kept, so that parsing again takes linear time overall."""
        num_kept = len(self._text) - self._offset
        if num_kept > MAX_VALUE_CHARS:
            raise self._refuse(f"a value has over {MAX_VALUE_CHARS:,} characters", self._offset)
        num_bytes = max(_BYTES_AT_ONCE, 2 * num_kept)
        chunk = read_bytes(self._stream, num_bytes, name=str(self._path))
        try:
            more = self._decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            bad_byte = error.object[error.start]
            raise DataError(
                f"{self._path}: byte 0x{bad_byte:02x}, somewhere after character "
                f"{self._num_dropped}, is not UTF-8; convert the file with iconv"
            ) from None
        if chunk:
            self._text = self._text[self._offset :] + more
            self._num_dropped += self._offset
            self._offset = 0
        return bool(chunk)

    def _refuse(self, problem: str, offset: int) -> DataError:
        return DataError(
            f"{self._path} is not the expected JSON (character {self._num_dropped + offset + 1}: "
            f"{problem}); fix the file, or give one in SQuAD's format"
        )
