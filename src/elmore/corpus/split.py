"""Choose which documents of a sequence of shards are held out.

A shard records where documents end; the number of a document depends on all shards before it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from elmore.corpus.shards import NUM_MARKERS, Shard

TRAIN, HELDOUT = 0, 1
_HASH_RANGE = 1 << 64


@dataclass(frozen=True, kw_only=True)
class Runs:
    """The documents of a shard in order; the first and last may be incomplete."""

    sentences: NDArray[np.int64]  # (R + 1,) first sentence of each, then the number of sentences
    symbols: NDArray[np.int64]  # (R + 1,) the same in symbols
    parts: NDArray[np.int64]  # (R,) `TRAIN` or `HELDOUT`
    is_continued: bool  # the first document began in an earlier shard

    def slices(self, part: int) -> Iterator[slice]:
        """Yield the stretches of symbols that belong to a part; adjacent ones are merged."""
        edges = np.flatnonzero(np.diff(self.parts, prepend=-1, append=-1))
        for first, last in pairwise(edges.tolist()):
            if self.parts[first] == part:
                yield slice(int(self.symbols[first]), int(self.symbols[last]))


@dataclass(frozen=True, kw_only=True)
class Split:
    """How to choose the held-out documents, in addition to those of held-out shards."""

    document_sentences: int | None
    seed: int
    threshold: int  # documents with a hash below this are held out


def choose_split(
    shards: Iterable[Shard],
    *,
    document_sentences: int | None,
    seed: int,
    share: float,
) -> Split:
    """Choose the threshold so that at least one document is held out, if there are two or more."""
    documents = _Documents(document_sentences)
    lowest, highest = _HASH_RANGE, -1
    for shard in shards:
        if len(documents.find_starts(shard)):
            hashes = _hash(documents.last_numbers, seed=seed)
            lowest = min(lowest, int(hashes.min()))
            highest = max(highest, int(hashes.max()))
    threshold = 0
    if share and documents.num_found > 1:
        threshold = min(max(round(share * _HASH_RANGE), lowest + 1), highest)
    return Split(document_sentences=document_sentences, seed=seed, threshold=threshold)


def split_shards(shards: Iterable[Shard], split: Split) -> Iterator[tuple[Shard, Runs]]:
    """Yield each shard with its documents and their parts."""
    documents = _Documents(split.document_sentences)
    part = TRAIN  # of the document continued from the previous shard
    for shard in shards:
        starts = documents.find_starts(shard)
        parts = np.full(len(starts), TRAIN)
        if shard.facts.is_heldout:
            parts[:] = HELDOUT
        elif split.threshold:
            hashes = _hash(documents.last_numbers, seed=split.seed)
            parts[hashes < np.uint64(split.threshold)] = HELDOUT
        num_sentences = shard.facts.num_sentences
        is_continued = num_sentences > 0 and (not len(starts) or starts[0] > 0)
        if is_continued:
            starts, parts = np.append(0, starts), np.append(part, parts)
        if len(parts):
            part = int(parts[-1])
        sentences = np.append(starts, num_sentences)
        symbols = shard.sentence_starts[sentences].astype(np.int64)
        yield (
            shard,
            Runs(sentences=sentences, symbols=symbols, parts=parts, is_continued=is_continued),
        )


def count_types(shard: Shard, runs: Runs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (T,) how often each type occurs in the training part and in the held-out part."""
    all_counts = shard.type_counts.astype(np.int64)
    heldout = np.zeros_like(all_counts)
    # bincount takes time proportional to the number of types, so count all stretches at once.
    stretches = [shard.symbols[stretch] for stretch in runs.slices(HELDOUT)]
    if stretches:
        symbols = np.concatenate(stretches)
        heldout = np.bincount(symbols, minlength=len(heldout) + NUM_MARKERS)[NUM_MARKERS:]
    return all_counts - heldout, heldout


class _Documents:
    """Numbers the documents of shards read in order."""

    def __init__(self, document_sentences: int | None) -> None:
        self._max_sentences = document_sentences
        self._num_open = 0  # sentences so far of the unfinished document
        self.num_found = 0
        self.last_numbers = np.zeros(0, np.uint64)

    def find_starts(self, shard: Shard) -> NDArray[np.int64]:
        """Return the first sentences of the documents that start in a shard."""
        num_sentences = shard.facts.num_sentences
        breaks = shard.breaks.astype(np.int64)
        if len(breaks) and breaks[0] == 0:
            self._num_open = 0
        starts = np.zeros(0, np.int64)
        if num_sentences:
            starts = np.unique(np.append(0, breaks[breaks < num_sentences]))
            if self._max_sentences is not None:
                starts = self._cut(starts, num_sentences, self._max_sentences)
            elif self._num_open:
                starts = starts[1:]
            last = int(starts[-1]) if len(starts) else -self._num_open
            self._num_open = num_sentences - last
        if len(breaks) and breaks[-1] == num_sentences:
            self._num_open = 0
        numbers = np.arange(self.num_found, self.num_found + len(starts))
        self.last_numbers = numbers.astype(np.uint64)
        self.num_found += len(starts)
        return starts

    def _cut(
        self, starts: NDArray[np.int64], num_sentences: int, max_sentences: int
    ) -> NDArray[np.int64]:
        """Also start a document where the one before has `max_sentences`."""
        found: list[int] = []
        edges = [*starts.tolist(), num_sentences]
        for index, (start, end) in enumerate(pairwise(edges)):
            room = max_sentences - self._num_open if index == 0 and self._num_open else 0
            found.extend(range(start + room, end, max_sentences))
        return np.array(found, np.int64)


def _hash(numbers: NDArray[np.uint64], *, seed: int) -> NDArray[np.uint64]:
    """Hash document numbers to distinct 64-bit numbers (SplitMix64)."""
    x = numbers * np.uint64(0x9E3779B97F4A7C15)
    x += np.uint64((seed * 0xD1342543DE82EF95 + 0x9E3779B97F4A7C15) % _HASH_RANGE)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x
