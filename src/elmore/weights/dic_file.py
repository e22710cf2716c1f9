"""Read char.dic and word.dic of ELMoForManyLangs: an entry, a tab and its id on each line."""

from pathlib import Path

from elmore.errors import ModelError
from elmore.files.bounded_file import read_bounded
from elmore.text.vocabulary import order_entries

MAX_BYTES = 1 << 30


def read_dic(path: Path, *, size: int) -> list[str]:
    """Return the entries of a table of `size` vectors in the order of their ids.

    The library strips each line, so an entry that is white space is lost; it takes that one for
    U+3000, the ideographic space.
    """
    try:
        text = read_bounded(path, max_bytes=MAX_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"{path} is not UTF-8 (byte {error.start}); get it again") from error
    ids: dict[str, int] = {}
    num_entries = 0
    for number, line in enumerate(text.split("\n"), start=1):
        fields = line.strip().split("\t")
        if fields == [""]:
            continue
        entry, place = ["\u3000", *fields][-2:]
        is_id = place.isascii() and place.isdigit() and len(place) < 10
        if len(fields) > 2 or not is_id or "\r" in entry:
            raise ModelError(
                f"{path}, line {number}: {line!r:.60} is not an entry, a tab and an id; "
                "get it again"
            )
        ids[entry] = int(place)
        num_entries += 1
    if num_entries != size:
        raise ModelError(f"{path} has {num_entries} entries for {size} vectors; get it again")
    try:
        return order_entries(ids, size=size)
    except ModelError as error:
        raise ModelError(f"{path}: {error}; get it again") from error
