"""Uses of words in an index."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """One occurrence of a word, with its sentence and where that comes from."""

    number: int  # of the token in the index, from 0
    word: str  # as it is spelled here
    sentence: int  # counted from 0 over the whole index
    position: int  # in the sentence, from 0
    tokens: list[str]
    source: str  # the name of the text file
    document: int  # of the source, from 0
    line: int  # of the source, from 1: where the sentence starts
    tag: str | None  # the part of speech, in text from CoNLL-U


@dataclass(frozen=True, kw_only=True, slots=True)
class UseList:
    """The uses of a word that match some filters: all, or a sample of them."""

    word: str
    total: int  # how many match
    is_sample: bool  # True if there are more than `limit`; the sample is spread evenly
    spellings: dict[str, int]  # how often each spelling occurs in the index, most frequent first
    uses: list[Use]


@dataclass(frozen=True, kw_only=True, slots=True)
class NearbyUse:
    """A use, and the cosine of its vector and another's."""

    similarity: float
    use: Use


@dataclass(frozen=True, kw_only=True, slots=True)
class WordCount:
    """A word, ignoring case, and how often it occurs."""

    word: str  # its most frequent spelling
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TypedUse:
    """A token of a sentence that is not in the index, with its vectors from the same model."""

    tokens: list[str]
    position: int
    vectors: Any  # (layers, D), in the order of the index's layers


def spread_evenly(total: int, limit: int) -> NDArray[np.int64]:
    """Return up to `limit` different numbers below `total`, evenly spaced, always the same ones.

    >>> spread_evenly(10, 4).tolist(), spread_evenly(3, 4).tolist()
    ([0, 2, 5, 7], [0, 1, 2])
    """
    if total <= limit:
        return np.arange(total)
    return np.arange(limit) * total // limit


def to_unit_length(vectors: Array) -> Array:
    """Divide each row by its length; rows of zeros stay as they are."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(norms, 1e-12)
