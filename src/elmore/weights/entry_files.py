"""Lists of characters and words: an entry per line, or an entry and its id (ELMoForManyLangs)."""

from collections.abc import Sequence
from pathlib import Path

from elmore.errors import ModelError
from elmore.files.untrusted import check_file, read_bounded
from elmore.text.vocabulary import order_entries, read_entries

MAX_DIC_BYTES = 1 << 30


def read_list(path: Path) -> list[str]:
    """Read one entry per line; refuse a truncated file."""
    size = check_file(path)
    entries = read_entries(path)
    with path.open("rb") as file:
        file.seek(max(size - 1, 0))
        if size and file.read() != b"\n":
            raise ModelError(f"{path} ends in the middle of a line; download it again")
    return entries


def check_entries(entries: Sequence[str]) -> None:
    """Check that every entry can be stored as one line of a text file."""
    for entry in entries:
        if "\n" in entry or entry.endswith("\r") or any("\ud800" <= c <= "\udfff" for c in entry):
            raise ModelError(
                f"{entry!r:.60} cannot be stored as a line of a vocabulary; remove it from the list"
            )


def read_dic(path: Path, *, size: int) -> list[str]:
    """Return the entries of a char.dic or word.dic in the order of their ids, one of `size` each.

    ELMoForManyLangs strips each line, which removes an entry that is white space; it assumes that
    this entry is U+3000, the ideographic space.
    """
    try:
        text = read_bounded(path, max_bytes=MAX_DIC_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"{path} is not UTF-8 (byte {error.start}); download it again") from error
    ids: dict[str, int] = {}
    num_entries = 0
    for number, line in enumerate(text.split("\n"), start=1):
        fields = line.strip().split("\t")
        if fields == [""]:
            continue
        entry, entry_id = ["\u3000", *fields][-2:]
        is_id = entry_id.isascii() and entry_id.isdigit() and len(entry_id) < 10
        if len(fields) > 2 or not is_id or "\r" in entry:
            raise ModelError(
                f"{path}, line {number}: {line!r:.60} is not an entry, a tab and an id; "
                "download it again"
            )
        ids[entry] = int(entry_id)
        num_entries += 1
    if num_entries != size:
        raise ModelError(f"{path} has {num_entries} entries for {size} vectors; download it again")
    try:
        return order_entries(ids, size=size)
    except ModelError as error:
        raise ModelError(f"{path}: {error}; download it again") from error
