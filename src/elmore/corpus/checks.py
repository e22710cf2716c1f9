"""Whether the files of a corpus are what corpus.json says.

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
    """Return what is wrong with a file that is missing or has another size."""
    if not path.is_file():
        return f"the corpus lacks {path}"
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
    """Read a shard and return what is wrong with it, or None; `facts` is what corpus.json says.

    The shard is mapped for this alone, so that no more than one stays in memory for being checked.
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
    """Raise `ValueError` unless (3, K) segments fill a part and lie within their shards."""
    starts, numbers, firsts = segments
    if not len(starts):
        if num_symbols:
            raise ValueError("there are none")
        return
    if starts[0] != 0 or np.any(starts[1:] <= starts[:-1]) or starts[-1] >= num_symbols:
        raise ValueError("they do not follow each other")
    if numbers.min() < 0 or numbers.max() >= len(shards):
        raise ValueError("they are in shards that do not exist")
    sizes = np.array([shard.num_symbols for shard in shards])[numbers]
    lengths = np.diff(starts, append=num_symbols)
    if firsts.min() < 0 or np.any(firsts > sizes) or np.any(lengths > sizes - firsts):
        raise ValueError("they go beyond their shards")


def check_documents(starts: NDArray[np.int64], *, num_symbols: int) -> None:
    """Raise `ValueError` unless (D + 1) starts of documents rise from 0 to the end of a part."""
    if starts[0] != 0 or starts[-1] != num_symbols or np.any(starts[1:] <= starts[:-1]):
        raise ValueError("they do not follow each other")


def check_word_ids(word_ids: NDArray[np.uint32], *, num_words: int) -> None:
    """Raise `ValueError` if an id has no word."""
    if word_ids.max(initial=0) >= num_words:
        raise ValueError(f"id {word_ids.max()} is not among {num_words} words")


def check_counts(counts: NDArray[np.int64], *, num_symbols: int) -> None:
    """Raise `ValueError` unless (V) counts add up to the symbols of the training part."""
    if counts.min(initial=0) < 0 or counts.max(initial=0) > num_symbols:
        raise ValueError("a count is impossible")
    if counts.sum() != num_symbols:
        raise ValueError(f"they add up to {counts.sum()} instead of {num_symbols}")
