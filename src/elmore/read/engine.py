"""Read chains of sentences in parallel, in batches; batch sizes do not change the results.

A chain is the text that one LSTM state runs through: a sentence, a document or a row of a stream.

Shapes: L layers, N tokens of a batch (with markers), D both directions of one layer.
"""

import copy
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from elmore.model.state import BiLMOutput, BiLMState, join
from elmore.read.batch_pool import submit
from elmore.read.reader import Reader, ReaderAhead, StartedReading, StartReading
from elmore.read.token_cache import TokenCache
from elmore.settings import check_range
from elmore.text.batches import NUM_MARKERS, Tokens

_Result = TypeVar("_Result")

# Batches, and ends of windows, that may be ready or in a queue while an earlier batch is used.
MAX_AHEAD = 4


class Chain:
    """Numbered sentences that are read in order, each from the final state of the one before."""

    __slots__ = ("carries_state", "sentences", "state")

    def __init__(
        self,
        sentences: Iterable[tuple[int, Tokens]],
        *,
        state: BiLMState | None = None,
        carries_state: bool = True,
    ) -> None:
        self.sentences = iter(sentences)
        self.state = state  # None: the initial state
        self.carries_state = carries_state  # if False, `state` is not updated


_Active = tuple[Chain, tuple[int, Tokens]]  # a chain and its next sentence, with its number


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadBatch:
    """The sentences of one batch, and its results."""

    numbers: list[int]
    sentences: list[Tokens]
    layers: Tensor  # (L, N, D), sentence after sentence, with markers
    state: BiLMState  # final state of each sentence: forward LM after </S>, backward LM after <S>

    @property
    def lengths(self) -> list[int]:
        """Number of tokens of each sentence, with markers."""
        return [len(sentence) + NUM_MARKERS for sentence in self.sentences]


class Engine:
    """A network, its token cache, and how batches are cut.

    A batch has up to `tokens_per_batch` tokens and `batch_size` sentences. `num_parallel` batches
    run in parallel, which helps if there are more cores than the two directions of one batch use.
    `initial` overrides the network's initial state. The network's weights must not change while it
    reads.
    """

    def __init__(
        self,
        reader: Reader,
        cache: TokenCache,
        *,
        tokens_per_batch: int,
        batch_size: int | None = None,
        num_parallel: int = 1,
        initial: BiLMState | None = None,
    ) -> None:
        self.reader = reader
        self.cache = cache
        self.tokens_per_batch = _check_limit("tokens_per_batch", tokens_per_batch)
        self.batch_size = None if batch_size is None else _check_limit("batch_size", batch_size)
        self.num_parallel = num_parallel
        self._initial = None if initial is None else initial.like(reader.initial_state(1))
        self._read_ahead: Callable[[], AbstractContextManager[StartReading | None]] = nullcontext
        if num_parallel == 1 and isinstance(reader, ReaderAhead):
            self._read_ahead = reader.read_ahead

    def with_limits(self, *, tokens_per_batch: int | None, batch_size: int | None) -> "Engine":
        """Return an engine with other limits for its batches, which shares the rest."""
        if tokens_per_batch is None and batch_size is None:
            return self
        other = copy.copy(self)
        if tokens_per_batch is not None:
            other.tokens_per_batch = _check_limit("tokens_per_batch", tokens_per_batch)
        if batch_size is not None:
            other.batch_size = _check_limit("batch_size", batch_size)
        return other

    def initial_state(self, num_sentences: int) -> BiLMState:
        """Return the state that sentences start from."""
        if self._initial is None:
            return self.reader.initial_state(num_sentences)
        return self._initial[[0] * num_sentences]

    def run(
        self,
        chains: Iterable[Chain],
        finish: Callable[[ReadBatch], _Result],
        *,
        num_lanes: int | None = None,
    ) -> Iterator[_Result]:
        """Yield `finish(batch)` for every batch, called in the thread that computed it.

        Up to `num_lanes` chains are read in parallel, by default all of them. When one ends, the
        next one starts.
        """
        waiting = iter(chains)
        lanes = list(islice(waiting, num_lanes))
        while True:
            active = [
                found for chain in lanes if (found := _take_sentence(chain, waiting)) is not None
            ]
            if not active:
                return
            lanes = [chain for chain, _ in active]
            yield from self._run_round(active, finish)

    def run_alone(
        self,
        windows: Iterable[Sequence[tuple[int, Tokens]]],
        finish: Callable[[ReadBatch], _Result],
    ) -> Iterator[list[_Result]]:
        """Read windows of numbered sentences, every sentence from the initial state.

        Yield the results of `finish` for the batches of each window. If the network can read ahead,
        a few more batches, also of the next window, are read while the caller uses them. An error
        is raised after the windows before it.
        """
        with self._read_ahead() as start:
            if start is not None:
                yield from self._run_ahead(windows, finish, start)
                return
            for window in windows:
                yield list(self.run(_read_alone(window), finish))

    def _run_ahead(
        self,
        windows: Iterable[Sequence[tuple[int, Tokens]]],
        finish: Callable[[ReadBatch], _Result],
        start: StartReading,
    ) -> Iterator[list[_Result]]:
        upcoming = self._cut_windows(windows, finish)
        waiting: deque[_Batch[_Result] | _WindowEnd] = deque()
        results: list[_Result] = []
        try:
            while True:
                while len(waiting) <= MAX_AHEAD and (new := next(upcoming, None)):
                    waiting.append(new)
                if not waiting:
                    return
                batches = _batches(waiting)
                if len(batches) > 1:  # this thread reads a single batch sooner
                    for batch in batches:
                        batch.start(start)
                item = waiting.popleft()
                if isinstance(item, _Batch):
                    results.append(item.result())
                    continue
                item.raise_error()
                yield results
                results = []
        finally:
            for batch in _batches(waiting):  # after an error or an interrupt, start no others
                batch.cancel()

    def _cut_windows(
        self,
        windows: Iterable[Sequence[tuple[int, Tokens]]],
        finish: Callable[[ReadBatch], _Result],
    ) -> "Iterator[_Batch[_Result] | _WindowEnd]":
        try:
            for window in windows:
                active = [(chain, next(chain.sentences)) for chain in _read_alone(window)]
                for batch in self._cut(active):
                    yield _Batch(self, batch, finish)
                yield _WindowEnd()
        except Exception as error:  # raised after the results of the windows before
            yield _WindowEnd(error)

    def _run_round(
        self,
        active: list[_Active],
        finish: Callable[[ReadBatch], _Result],
    ) -> Iterator[_Result]:
        """Read one sentence of every chain; the batches are independent."""
        calls = [partial(self._run_batch, batch, finish) for batch in self._cut(active)]
        if self.num_parallel == 1 or len(calls) == 1:
            for call in calls:
                yield call()
            return
        futures: list[Future[_Result]] = [
            submit(call, num_threads=self.num_parallel) for call in calls
        ]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:  # after an error or an interrupt, do not start the others
                future.cancel()

    def _cut(self, active: list[_Active]) -> Iterator[list[_Active]]:
        """Cut sentences into batches."""
        lengths = [len(sentence) + NUM_MARKERS for _, (_, sentence) in active]
        for batch in cut_batches(
            lengths, max_tokens=self.tokens_per_batch, max_sentences=self.batch_size
        ):
            yield [active[index] for index in batch]

    def _run_batch(self, active: list[_Active], finish: Callable[[ReadBatch], _Result]) -> _Result:
        with torch.inference_mode():
            output = self.reader.contextualize(*self._prepare(active))
            return self._finish(active, output, finish)

    def _prepare(self, active: list[_Active]) -> tuple[Tensor, Tensor, BiLMState | None]:
        """Return the token vectors, the lengths and the first states of a batch."""
        sentences = [sentence for _, (_, sentence) in active]
        lengths = np.array([len(sentence) + NUM_MARKERS for sentence in sentences])
        return (
            self.cache.find(sentences),
            torch.from_numpy(lengths),
            self._join_states([chain for chain, _ in active]),
        )

    def _finish(
        self,
        active: list[_Active],
        output: BiLMOutput,
        finish: Callable[[ReadBatch], _Result],
    ) -> _Result:
        for row, (chain, _) in enumerate(active):
            if chain.carries_state:
                chain.state = output.state[row : row + 1]
        return finish(
            ReadBatch(
                numbers=[number for _, (number, _) in active],
                sentences=[sentence for _, (_, sentence) in active],
                layers=output.layers,
                state=output.state,
            )
        )

    def _join_states(self, chains: list[Chain]) -> BiLMState | None:
        """Return the chains' states, or None if all are at the network's initial state."""
        if all(chain.state is None for chain in chains):
            return None if self._initial is None else self.initial_state(len(chains))
        initial = self.initial_state(1)
        return join([initial if chain.state is None else chain.state for chain in chains])


class _Batch(Generic[_Result]):
    """Sentences that are read in other threads once started, or else when the result is needed."""

    def __init__(
        self, engine: Engine, active: list[_Active], finish: Callable[[ReadBatch], _Result]
    ) -> None:
        self._engine = engine
        self._active = active
        self._finish = finish
        self._is_started = False
        self._reading: StartedReading | None = None

    def start(self, start: StartReading) -> None:
        if self._is_started:
            return
        self._is_started = True
        # An error is raised again by `result`, after the results of earlier batches.
        with suppress(Exception), torch.inference_mode():
            self._reading = start(*self._engine._prepare(self._active))

    def result(self) -> _Result:
        reading, self._reading = self._reading, None  # its layers are not kept
        if reading is None:
            return self._engine._run_batch(self._active, self._finish)
        with torch.inference_mode():
            return self._engine._finish(self._active, reading.result(), self._finish)

    def cancel(self) -> None:
        if self._reading is not None:
            self._reading.cancel()


@dataclass(slots=True)
class _WindowEnd:
    """The end of a window, or of all if there was an error."""

    error: Exception | None = None

    def raise_error(self) -> None:
        error, self.error = self.error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # it refers to this frame, which would keep the text's files open


def _batches(waiting: "Iterable[_Batch[_Result] | _WindowEnd]") -> list[_Batch[_Result]]:
    return [item for item in waiting if isinstance(item, _Batch)]


def _read_alone(window: Iterable[tuple[int, Tokens]]) -> Iterator[Chain]:
    return (Chain([item], carries_state=False) for item in window)


def _take_sentence(
    chain: Chain, waiting: Iterator[Chain]
) -> tuple[Chain, tuple[int, Tokens]] | None:
    """Return the next sentence of a chain, or of the next waiting chain if it has ended."""
    while True:
        item = next(chain.sentences, None)
        if item is not None:
            return chain, item
        following = next(waiting, None)
        if following is None:
            return None
        chain = following


def _check_limit(name: str, value: int) -> int:
    check_range(name, value, 1, sys.maxsize)
    return value


def cut_batches(
    lengths: Sequence[int], *, max_tokens: int, max_sentences: int | None = None
) -> Iterator[list[int]]:
    """Group sentences of similar length into batches of at most `max_tokens`; yield their indices.

    A longer sentence is a batch of its own. The batch that is not full has the shortest sentences,
    because there the unused rows cost the fewest steps.

    >>> list(cut_batches([5, 1, 4, 1], max_tokens=6))
    [[0], [2, 1, 3]]
    """
    batch: list[int] = []
    num_tokens = 0
    for number in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        if batch and (num_tokens + lengths[number] > max_tokens or len(batch) == max_sentences):
            yield batch
            batch, num_tokens = [], 0
        batch.append(number)
        num_tokens += lengths[number]
    if batch:
        yield batch
