"""Read ELMoForManyLangs' char.dic and word.dic: an entry, a tab and an id on each line."""

from pathlib import Path

from elmore.errors import ModelError
from elmore.files.bounded_file import read_bounded
from elmore.text.vocabulary import order_entries

MAX_BYTES = 1 << 30


def read_dic(path: Path, *, size: int) -> list[str]:
    """Return the entries, in the order of their ids, for a table of `size` vectors.

    ELMoForManyLangs strips each line, which removes an entry that is white space; it assumes that
    this entry is U+3000, the ideographic space.
    """
    try:
        text = read_bounded(path, max_bytes=MAX_BYTES).decode("utf-8")
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
