"""Read the lines of UTF-8 files, compressed or not, and other helpers of the readers."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

from elmore.errors import DataError
from elmore.text import files
from elmore.text.encodings import advise_on_encoding
from elmore.text.files import open_text, read_bytes
from elmore.wording import shorten

_BYTES_AT_ONCE = 2**20

_Example = TypeVar("_Example")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line's number, from 1, and its text without the line break.

    Only a line feed ends a line; tokens may contain Unicode's other line breaks.
    """
    with open_text(path) as (_, stream):
        for number, line in enumerate(_split(stream, name=str(path)), start=1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{path}, line {number}: byte 0x{error.object[error.start]:02x} is not UTF-8; "
                    f"{advise_on_encoding(line)}"
                ) from None
            yield number, text.removesuffix("\r")


def split_columns(line: str) -> list[str]:
    r"""Return the columns of a line, separated by tabs, or by spaces if there are no tabs.

    >>> split_columns("EU\t\tI-ORG"), split_columns("EU  NNP")
    (['EU', '', 'I-ORG'], ['EU', 'NNP'])
    """
    if "\t" in line:
        return line.split("\t")
    return [column for column in line.split(" ") if column]


def has_suffix(path: Path, suffix: str) -> bool:
    """Return whether a file has this suffix, ignoring case, compressed or not.

    >>> has_suffix(Path("dev.CoNLLU.gz"), ".conllu")
    True
    """
    return suffix in map(str.lower, path.suffixes)


def refuse_none(examples: Iterable[_Example], *, complaint: str) -> Iterator[_Example]:
    """Yield the examples; if there are none, raise a DataError with the complaint."""
    is_empty = True
    for example in examples:
        is_empty = False
        yield example
    if is_empty:
        raise DataError(complaint)


def read_filled_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers."""
    return ((number, line) for number, line in read_lines(path) if line.strip())


def quote(text: str) -> str:
    """Quote a line in a message, shortened if it is long."""
    return repr(shorten(text))


def _split(stream: BinaryIO, *, name: str) -> Iterator[bytes]:
    """Yield the lines of a stream; refuse a line that is too long before reading all of it."""
    parts: list[bytes] = []
    line_number, num_bytes = 1, 0
    while chunk := read_bytes(stream, _BYTES_AT_ONCE, name=name):
        for index, part in enumerate(chunk.split(b"\n")):
            if index > 0:
                yield b"".join(parts)
                parts, num_bytes = [], 0
                line_number += 1
            parts.append(part)
            num_bytes += len(part)
            if num_bytes > files.MAX_LINE_BYTES:
                raise files.make_long_line_error(name, line_number)
    if rest := b"".join(parts):
        yield rest
