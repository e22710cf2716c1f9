"""A part of a prepared corpus: random access to its text, which is read from shards.

The checksum of a shard is verified before it is first read.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmore.corpus.checks import find_shard_damage
from elmore.corpus.folder import damaged, shard_path
from elmore.corpus.shards import BEGIN, END, NUM_MARKERS, Shard, ShardFacts

# Each open shard takes a file descriptor; a process may have about a thousand.
MAX_OPEN_SHARDS = 256
DOCUMENT_BLOCK_SYMBOLS = 1 << 16

# Called with the number of shards checked so far, and the number of all.
OnShards = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Lookup:
    """The symbols at some offsets of a part."""

    tokens: list[str]  # distinct tokens, without markers
    positions: NDArray[np.int64]  # 0 and 1 are the markers, k + 2 is tokens[k]
    word_ids: NDArray[np.int64]  # in the vocabulary; the same shape


class ShardFiles:
    """The shards of a corpus, opened when needed, with the word ids of their types."""

    def __init__(
        self, folder: Path, facts: Sequence[ShardFacts], *, word_ids: NDArray[np.uint32]
    ) -> None:
        self._folder = folder
        self._facts = facts
        self._word_ids = word_ids
        self._firsts = np.cumsum([0, *(shard.num_types + NUM_MARKERS for shard in facts)])
        self._is_checked = [False] * len(facts)
        self.open = lru_cache(maxsize=MAX_OPEN_SHARDS)(self._open)

    def check(self, *, rank: int, num_ranks: int, on_shard: OnShards) -> None:
        """Check this rank's shards; other processes check the rest."""
        numbers = range(rank, len(self._facts), num_ranks)
        for num_done, number in enumerate(numbers):
            on_shard(num_done, len(numbers))
            self._check(number)
        self._is_checked = [True] * len(self._facts)

    def _open(self, number: int) -> Shard:
        self._check(number)
        return Shard(shard_path(self._folder, number))

    def _check(self, number: int) -> None:
        if not self._is_checked[number]:
            damage = find_shard_damage(shard_path(self._folder, number), self._facts[number])
            if damage is not None:
                raise damaged(damage)
            self._is_checked[number] = True

    def word_ids(self, number: int) -> NDArray[np.uint32]:
        """Return (T + 2,) the word id of each symbol of a shard."""
        return self._word_ids[self._firsts[number] : self._firsts[number + 1]]


class CorpusPart:
    """The training text or the held-out text, as one sequence of symbols."""

    def __init__(
        self,
        *,
        totals: dict[str, Any],
        segments: NDArray[np.int64],  # (3, K): start in the part, shard, start in the shard
        document_starts: NDArray[np.int64],
        shards: ShardFiles,
        vocabulary: list[str],
        unknown_id: int,
    ) -> None:
        self.num_documents: int = totals["documents"]
        self.num_sentences: int = totals["sentences"]
        self.num_tokens: int = totals["tokens"]
        self.num_symbols: int = totals["symbols"]
        self._segment_starts, self._segment_shards, self._segment_firsts = segments
        self._document_starts = document_starts
        self._shards = shards
        self._vocabulary = vocabulary
        self._unknown_id = unknown_id

    def select(self, stretches: Sequence[tuple[int, int]]) -> "CorpusPart":
        """Return a part that consists of stretches of this one, in the given order.

        A stretch is given by its first symbol and one past its last, starts and ends at document
        boundaries, and may be repeated. No text is copied.
        """
        segments: list[tuple[int, int, int]] = []
        documents: list[NDArray[np.int64]] = []
        num_symbols = num_sentences = 0
        for first, end in stretches:
            for start, shard, inner, length in self._cut_segments(first, end):
                segments.append((num_symbols + start - first, shard, inner))
                starts = self._shards.open(shard).sentence_starts
                num_sentences += int(
                    np.subtract(*starts.searchsorted(np.array([inner + length, inner], "<u4")))
                )
            own = slice(*self._document_starts.searchsorted([first, end]))
            documents.append(self._document_starts[own] - first + num_symbols)
            num_symbols += end - first
        starts = np.concatenate([*documents, [num_symbols]])
        return CorpusPart(
            totals={
                "documents": len(starts) - 1,
                "sentences": num_sentences,
                "tokens": num_symbols - NUM_MARKERS * num_sentences,
                "symbols": num_symbols,
            },
            segments=np.array(segments, np.int64).reshape(-1, 3).T,
            document_starts=starts,
            shards=self._shards,
            vocabulary=self._vocabulary,
            unknown_id=self._unknown_id,
        )

    def segments(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield each segment's start in this part, its shard, its start there, and its length."""
        return self._cut_segments(0, self.num_symbols)

    def sentence_starts(self, shard: int, sentences: Sequence[int]) -> list[int]:
        """Return the first symbol of some sentences of a shard, and one past its last symbol."""
        starts = self._shards.open(shard).sentence_starts
        return starts[[*sentences, len(starts) - 1]].tolist()

    def _cut_segments(self, first: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield segments as `segments` does, for a range of symbols."""
        number = int(self._segment_starts.searchsorted(first, side="right")) - 1
        while first < end:
            is_last = number + 1 == len(self._segment_starts)
            stop = end if is_last else min(end, int(self._segment_starts[number + 1]))
            inner = first - int(self._segment_starts[number]) + int(self._segment_firsts[number])
            yield first, int(self._segment_shards[number]), inner, stop - first
            first, number = stop, number + 1

    def look_up(self, offsets: NDArray[np.int64]) -> Lookup:
        """Return the symbols at `offsets` of this part; an array of any shape."""
        locations = self._locate(offsets)
        symbols = np.empty(len(locations.inner), np.int64)
        word_ids = np.empty(len(locations.inner), np.int64)
        for number, group in locations.groups:
            found = self._shards.open(number).symbols[locations.inner[group]]
            symbols[group] = found
            word_ids[group] = self._shards.word_ids(number)[found]
        keys, unlisted = self._find_keys(symbols, word_ids, locations)
        tokens, positions = self._number(symbols, keys, unlisted)
        return Lookup(
            tokens=tokens,
            positions=locations.restore_order(positions),
            word_ids=locations.restore_order(word_ids),
        )

    def _find_keys(
        self, symbols: NDArray[np.int64], word_ids: NDArray[np.int64], locations: "_Locations"
    ) -> tuple[NDArray[np.int64], list[str]]:
        """Return a key per token: its word id, or for other tokens a number after all word ids."""
        keys = word_ids.copy()
        is_outside = word_ids == self._unknown_id
        unlisted: dict[str, int] = {}
        for number, group in locations.groups:
            outside = group.start + np.flatnonzero(is_outside[group])
            if len(outside):
                types, inverse = np.unique(symbols[outside] - NUM_MARKERS, return_inverse=True)
                new_keys = [
                    unlisted.setdefault(token, len(self._vocabulary) + len(unlisted))
                    for token in self._shards.open(number).spell(types)
                ]
                keys[outside] = np.array(new_keys)[inverse]
        return keys, list(unlisted)

    def _number(
        self, symbols: NDArray[np.int64], keys: NDArray[np.int64], unlisted: list[str]
    ) -> tuple[list[str], NDArray[np.int64]]:
        """Assign numbers to the distinct keys; return their tokens and the (N,) positions."""
        positions = symbols.copy()
        is_token = symbols >= NUM_MARKERS
        distinct, inverse = np.unique(keys[is_token], return_inverse=True)
        positions[is_token] = inverse + NUM_MARKERS
        num_words = len(self._vocabulary)
        tokens = [
            self._vocabulary[key] if key < num_words else unlisted[key - num_words]
            for key in distinct.tolist()
        ]
        return tokens, positions

    def sentence_bounds(
        self, offsets: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the start and end (exclusive) of the sentence that each offset is in."""
        locations = self._locate(offsets)
        before = np.empty(len(locations.inner), np.int64)
        lengths = np.empty(len(locations.inner), np.int64)
        for number, group in locations.groups:
            starts = self._shards.open(number).sentence_starts
            inner = locations.inner[group]
            # With another dtype, searchsorted would convert the whole array first.
            sentences = starts.searchsorted(inner.astype(starts.dtype), side="right")
            firsts = starts[sentences - 1]
            before[group] = inner - firsts
            lengths[group] = starts[sentences] - firsts
        first_symbols = offsets - locations.restore_order(before)
        return first_symbols, first_symbols + locations.restore_order(lengths)

    def documents(self) -> Iterator[list[list[str]]]:
        """Yield each document as a list of tokenized sentences, without markers."""
        starts = self._document_starts
        first = 0
        while first < self.num_documents:
            block_end = np.searchsorted(
                starts, starts[first] + DOCUMENT_BLOCK_SYMBOLS, side="right"
            )
            end = max(int(block_end) - 1, first + 1)
            sentences, begins = self._read_sentences(int(starts[first]), int(starts[end]))
            edges = np.searchsorted(begins, starts[first : end + 1]).tolist()
            for edge, next_edge in pairwise(edges):
                yield sentences[edge:next_edge]
            first = end

    def beginning(self, number: int, *, max_tokens: int) -> list[list[str]]:
        """Return the first sentences of a document, at least one, up to about `max_tokens`.

        The rest of the document is not read.
        """
        return self.stretch(int(self._document_starts[number]), max_tokens=max_tokens)

    def stretch(self, offset: int, *, max_tokens: int) -> list[list[str]]:
        """Return the sentence at an offset and those after it in its document, like `beginning`."""
        number = int(np.searchsorted(self._document_starts, offset, side="right"))
        first_start, first_end = (
            int(bounds[0]) for bounds in self.sentence_bounds(np.array([offset]))
        )
        # A sentence has at least one token, so its markers are at most two thirds of its symbols.
        stop = max(first_end, first_start + 3 * max_tokens)
        stop = min(stop, int(self._document_starts[number]))
        taken: list[list[str]] = []
        num_tokens = 0
        for sentence in self._read_sentences(first_start, stop)[0]:
            num_tokens += len(sentence)
            if taken and num_tokens > max_tokens:
                break
            taken.append(sentence)
        return taken

    def _read_sentences(self, first: int, end: int) -> tuple[list[list[str]], NDArray[np.int64]]:
        """Return the whole sentences in a range of symbols, and the start of each."""
        found = self.look_up(np.arange(first, end))
        tokens = np.array(["", "", *found.tokens], dtype=object)[found.positions]
        ends = np.flatnonzero(found.positions == END)
        begins = np.flatnonzero(found.positions == BEGIN)[: len(ends)]
        sentences = [
            tokens[start + 1 : stop].tolist()
            for start, stop in zip(begins.tolist(), ends.tolist(), strict=True)
        ]
        return sentences, begins + first

    def _locate(self, offsets: NDArray[np.int64]) -> "_Locations":
        """Find the shards of symbols, and their offsets in them."""
        flat = np.ravel(offsets)
        if len(flat) and (flat.min() < 0 or flat.max() >= self.num_symbols):
            raise IndexError(f"offsets must be between 0 and {self.num_symbols - 1}")
        segments = self._segment_starts.searchsorted(flat, side="right") - 1
        inner = flat - self._segment_starts[segments] + self._segment_firsts[segments]
        numbers = self._segment_shards[segments]
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        edges = np.flatnonzero(np.diff(numbers, prepend=-1, append=-1))
        return _Locations(
            shape=np.shape(offsets),
            order=order,
            inner=inner[order],
            groups=[
                (int(numbers[start]), slice(start, end)) for start, end in pairwise(edges.tolist())
            ],
        )


@dataclass(frozen=True, kw_only=True)
class _Locations:
    """Symbols sorted by shard, with their offsets there."""

    shape: tuple[int, ...]  # of the requested offsets
    order: NDArray[np.int64]  # index of each in the request
    inner: NDArray[np.int64]  # offset in its shard
    groups: list[tuple[int, slice]]  # each shard, and which symbols are in it

    def restore_order(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return values in the order and shape of the request."""
        result = np.empty_like(values)
        result[self.order] = values
        return result.reshape(self.shape)
