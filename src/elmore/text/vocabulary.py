"""Lists of words or characters whose place is their id, kept one a line."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from elmore.errors import DataError, ModelError

MAX_BYTES = 1 << 30

# The names that bilm-tf's vocabularies give the sentence markers and words outside the list.
BEGIN_WORD, END_WORD, UNKNOWN_WORD = "<S>", "</S>", "<UNK>"


class WordLookup:
    """Give each word its id; a word outside the list gets that of `unknown`."""

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
                raise ModelError(f"the vocabulary lacks {needed!r}; add it as a line of its own")
        self._ids = dict(ids)
        self._max_chars = max_chars
        self._unknown = ids[unknown]
        self.begin_id = ids[begin]
        self.end_id = ids[end]

    def find(self, word: str) -> int:
        """Return the id of a word."""
        return self._ids.get(word[: self._max_chars], self._unknown)


def number_entries(entries: Sequence[str]) -> dict[str, int]:
    """Return each entry's place; an empty entry stands for an id that nothing has.

    >>> number_entries(["<S>", "", "bank"])
    {'<S>': 0, 'bank': 2}
    """
    ids: dict[str, int] = {}
    for place, entry in enumerate(entries):
        if not entry:
            continue
        if entry in ids:
            raise DataError(
                f"{entry!r} stands in the vocabulary twice, at lines {ids[entry] + 1} and "
                f"{place + 1}; remove one"
            )
        ids[entry] = place
    return ids


def order_entries(ids: Mapping[str, int], *, size: int) -> list[str]:
    """Return the list that `number_entries` reads, `size` long."""
    entries = [""] * size
    for entry, place in ids.items():
        if not 0 <= place < size:
            raise ModelError(f"{entry!r} has id {place}, but there are only {size} vectors")
        if entries[place]:
            raise ModelError(f"{entry!r} and {entries[place]!r} have the same id {place}")
        entries[place] = entry
    return entries


def read_entries(path: Path) -> list[str]:
    """Read one entry a line; only a line feed ends a line, so an entry may be any other space."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DataError(f"{path} has over {MAX_BYTES >> 20} MB; that is no list of words")
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check the path") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 (byte {error.start}); convert it first") from error
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]


def write_entries(path: Path, entries: Sequence[str]) -> None:
    """Write what `read_entries` reads."""
    path.write_bytes("".join(f"{entry}\n" for entry in entries).encode("utf-8"))


def read_word_list(path: Path) -> list[str]:
    """Read a vocabulary of bilm-tf's kind: a word a line, the three marks somewhere among them."""
    entries = read_entries(path)
    ids = number_entries(entries)
    missing = [mark for mark in (BEGIN_WORD, END_WORD, UNKNOWN_WORD) if mark not in ids]
    if missing:
        raise DataError(
            f"the vocabulary {path} lacks {', '.join(missing)}; add each as a line of its own, at "
            "the top of the file"
        )
    return entries


def fits_word_list(word: str) -> bool:
    """Say whether a token can stand in such a file; bilm-tf strips lines and splits them at CR."""
    return word == word.strip() != "" and "\r" not in word
