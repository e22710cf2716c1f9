"""Vocabulary files: one word or character per line; the id is the line number, from 0."""

import lzma
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from elmore.errors import DataError, ModelError
from elmore.text.compressed_stream import FORMATS, open_compressed

MAX_BYTES = 1 << 30

# Sentence markers and unknown words in bilm-tf's vocabularies.
BEGIN_WORD, END_WORD, UNKNOWN_WORD = "<S>", "</S>", "<UNK>"


class WordLookup:
    """Map words to ids; a word outside the vocabulary gets the id of `unknown`."""

    def __init__(
        self,
        ids: Mapping[str, int],
        *,
        begin: str,
        end: str,
        unknown: str,
        max_chars: int | None = None,
    ) -> None:
        for needed in (begin, end, unknown):
            if needed not in ids:
                raise ModelError(f"the vocabulary lacks {needed!r}; add it on a line of its own")
        self._ids = dict(ids)
        self._max_chars = max_chars
        self._unknown = ids[unknown]
        self.begin_id = ids[begin]
        self.end_id = ids[end]

    def find(self, word: str) -> int:
        """Return the id of a word."""
        return self._ids.get(word[: self._max_chars], self._unknown)


def number_entries(entries: Sequence[str]) -> dict[str, int]:
    """Return the id of each entry, its index in the list; empty entries are unused ids.

    >>> number_entries(["<S>", "", "bank"])
    {'<S>': 0, 'bank': 2}
    """
    ids: dict[str, int] = {}
    for index, entry in enumerate(entries):
        if not entry:
            continue
        if entry in ids:
            raise DataError(
                f"{entry!r} is in the vocabulary twice, on lines {ids[entry] + 1} and "
                f"{index + 1}; remove one"
            )
        ids[entry] = index
    return ids


def order_entries(ids: Mapping[str, int], *, size: int) -> list[str]:
    """Return the list of length `size` from which `number_entries` makes `ids`."""
    entries = [""] * size
    for entry, index in ids.items():
        if not 0 <= index < size:
            raise ModelError(f"{entry!r} has id {index}, but there are only {size} vectors")
        if entries[index]:
            raise ModelError(f"{entry!r} and {entries[index]!r} have the same id {index}")
        entries[index] = entry
    return entries


def read_entries(path: Path) -> list[str]:
    """Read one entry per line, also of a .gz file. Only a line feed ends a line."""
    suffix = path.suffix.lower()
    try:
        with path.open("rb") as file:  # a device has no size and may have no end
            stream = open_compressed(file, suffix=suffix) if suffix in FORMATS else file
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise DataError(f"{path} is larger than {MAX_BYTES >> 20} MB; give a list of words")
        text = data.decode("utf-8")
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read {path}: {reason}; check the file") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 (byte {error.start}); convert it first") from error
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]


def write_entries(path: Path, entries: Sequence[str]) -> None:
    """Write one entry per line, for `read_entries`."""
    path.write_bytes("".join(f"{entry}\n" for entry in entries).encode("utf-8"))


def read_word_list(path: Path) -> list[str]:
    """Read a bilm-tf vocabulary: one word per line, including <S>, </S> and <UNK>."""
    entries = read_entries(path)
    ids = number_entries(entries)
    missing = [mark for mark in (BEGIN_WORD, END_WORD, UNKNOWN_WORD) if mark not in ids]
    if missing:
        raise DataError(
            f"the vocabulary {path} lacks {', '.join(missing)}; add each on a line of its own at "
            "the top of the file"
        )
    return entries


def fits_word_list(word: str) -> bool:
    """Return whether a vocabulary file can hold a token; bilm-tf strips lines, splits at CR."""
    return word == word.strip() != "" and "\r" not in word
