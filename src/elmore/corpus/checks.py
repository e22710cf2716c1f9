"""Check that the files of a corpus match corpus.json.

Shapes: K segments, D documents, V words.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmore.corpus.shards import Shard, ShardFacts
from elmore.errors import DataError
from elmore.files.hashing import hash_file
from elmore.wording import count


def find_size_damage(path: Path, *, num_bytes: int) -> str | None:
    """Return what is wrong if a file is missing or has the wrong size, or None."""
    if not path.is_file():
        return f"{path} is missing"
    if path.stat().st_size != num_bytes:
        return f"{path} has {count(path.stat().st_size, 'byte')} instead of {num_bytes:,}"
    return None


def find_file_damage(path: Path, entry: Mapping[str, Any]) -> str | None:
    """Read a file and return what is wrong with it, or None."""
    wrong_size = find_size_damage(path, num_bytes=entry["bytes"])
    if wrong_size is not None:
        return wrong_size
    return None if hash_file(path) == entry["sha256"] else f"{path} is damaged"


def find_shard_damage(path: Path, facts: ShardFacts) -> str | None:
    """Read a shard and return what is wrong with it, or None; `facts` are those of corpus.json.

    The shard is mapped only for this check, so that at most one checked shard is in memory.
    """
    wrong_size = find_size_damage(path, num_bytes=facts.num_bytes)
    if wrong_size is not None:
        return wrong_size
    try:
        shard = Shard(path)
    except DataError:
        return f"{path} is damaged (its header cannot be read)"
    if shard.facts != facts:
        return f"{path} is damaged (its header differs from corpus.json)"
    damage = shard.find_damage()
    return None if damage is None else f"{path} is damaged ({damage})"


def check_segments(
    segments: NDArray[np.int64], *, num_symbols: int, shards: Sequence[ShardFacts]
) -> None:
    """Raise `ValueError` unless (3, K) segments cover a part and lie within their shards."""
    starts, numbers, firsts = segments
    if not len(starts):
        if num_symbols:
            raise ValueError("it is empty")
        return
    if starts[0] != 0 or np.any(starts[1:] <= starts[:-1]) or starts[-1] >= num_symbols:
        raise ValueError("its segments are not in order")
    if numbers.min() < 0 or numbers.max() >= len(shards):
        raise ValueError("it refers to shards that do not exist")
    sizes = np.array([shard.num_symbols for shard in shards])[numbers]
    lengths = np.diff(starts, append=num_symbols)
    if firsts.min() < 0 or np.any(firsts > sizes) or np.any(lengths > sizes - firsts):
        raise ValueError("its segments extend beyond their shards")


def check_documents(starts: NDArray[np.int64], *, num_symbols: int) -> None:
    """Raise `ValueError` unless the (D + 1) document starts increase from 0 to the part's end."""
    if starts[0] != 0 or starts[-1] != num_symbols or np.any(starts[1:] <= starts[:-1]):
        raise ValueError("its documents are not in order")


def check_word_ids(word_ids: NDArray[np.uint32], *, num_words: int) -> None:
    """Raise `ValueError` if an id is not in the vocabulary."""
    if word_ids.max(initial=0) >= num_words:
        raise ValueError(f"it has id {word_ids.max()}, but there are only {num_words} words")


def check_counts(counts: NDArray[np.int64], *, num_symbols: int) -> None:
    """Raise `ValueError` unless the (V,) counts add up to the symbols of the training part."""
    if counts.min(initial=0) < 0 or counts.max(initial=0) > num_symbols:
        raise ValueError("a count is out of range")
    if counts.sum() != num_symbols:
        raise ValueError(f"its counts add up to {counts.sum()} instead of {num_symbols}")
