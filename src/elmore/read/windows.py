"""Read sentences in order, window by window, under a state policy."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, TypeVar

from elmore.config import StatePolicy
from elmore.errors import ConfigError, DataError
from elmore.model.state import BiLMState, RowMemory, join
from elmore.read.engine import Chain, Engine, ReadBatch
from elmore.text.batches import NUM_MARKERS, Tokens, refuse_string

# Windows have this many batches, so that sentences of similar length share a batch.
BATCHES_IN_WINDOW = 4

_Item = TypeVar("_Item")
_Vectors = TypeVar("_Vectors")


@dataclass(frozen=True, kw_only=True, slots=True)
class SentenceWindow(Generic[_Vectors]):
    """Consecutive sentences, their vectors, and the LSTM state after them."""

    sentences: list[Tokens]
    vectors: list[_Vectors]
    state: BiLMState | None  # None under policy `reset`


class WindowedReading(Generic[_Vectors]):
    """Reads sentences in order; `finish` computes the result for each sentence of a batch.

    `make_empty` returns the result for a sentence without tokens.
    """

    def __init__(
        self,
        engine: Engine,
        finish: Callable[[ReadBatch], Sequence[_Vectors]],
        *,
        make_empty: Callable[[], _Vectors],
        policy: StatePolicy,
        max_sentence_tokens: int,
    ) -> None:
        self._engine = engine
        self._finish = finish
        self._make_empty = make_empty
        self._policy = policy
        self._max_sentence_tokens = max_sentence_tokens

    def read(
        self,
        sentences: Iterable[Tokens],
        *,
        rows: int = 1,
        state: BiLMState | None = None,
        num_before: int = 0,
    ) -> Iterator[SentenceWindow[_Vectors]]:
        """Read sentences in order, starting from `state` after `num_before` earlier sentences.

        Under policy `document` an empty sentence ends a document. Under policy `stream` sentence k
        continues row k modulo `rows`, and an empty sentence is read as a pair of markers.
        """
        if not isinstance(rows, int) or rows < 1:
            raise ConfigError(f"rows is {rows!r}; give a whole number of at least 1")
        max_tokens, group = self._engine.tokens_per_batch * BATCHES_IN_WINDOW, 1
        if self._policy is StatePolicy.STREAM:
            # One sentence per row: the next one in a row depends on it anyway, and the state must
            # not be ahead of the vectors that were yielded.
            max_tokens, group = 1, rows
        checked = self._check(sentences, num_before=num_before)
        windows = cut_windows(checked, max_tokens=max_tokens, multiple_of=group)
        if self._policy is StatePolicy.RESET:
            yield from self._read_alone(windows, state)
            return
        for window in windows:
            if self._policy is StatePolicy.DOCUMENT:
                vectors, state = self._read_documents(window, state)
            else:
                vectors, state = self._read_rows(window, state, rows=rows)
            yield self._make_window(window, vectors, state)

    def _read_alone(
        self, windows: Iterable[list[Tokens]], state: BiLMState | None
    ) -> Iterator[SentenceWindow[_Vectors]]:
        """Read every sentence from the initial state."""
        started: deque[list[Tokens]] = deque()

        def number_sentences() -> Iterator[list[tuple[int, Tokens]]]:
            for window in windows:
                started.append(window)
                yield [(number, sentence) for number, sentence in enumerate(window) if sentence]

        for results in self._engine.run_alone(number_sentences(), self._number_vectors):
            yield self._make_window(started.popleft(), dict(chain.from_iterable(results)), state)

    def _make_window(
        self, window: list[Tokens], vectors: Mapping[int, _Vectors], state: BiLMState | None
    ) -> SentenceWindow[_Vectors]:
        in_order = [
            vectors[number] if number in vectors else self._make_empty()
            for number in range(len(window))
        ]
        return SentenceWindow(sentences=window, vectors=in_order, state=state)

    def _number_vectors(self, batch: ReadBatch) -> list[tuple[int, _Vectors]]:
        """Return the result for each sentence of a batch, with its number."""
        return list(zip(batch.numbers, self._finish(batch), strict=True))

    def _read_documents(
        self, window: list[Tokens], state: BiLMState | None
    ) -> tuple[dict[int, _Vectors], BiLMState]:
        """Read documents in parallel, the first from `state`; also return the last one's state."""
        chains = [
            Chain((number, window[number]) for number in document)
            for document in chain_documents(window)
        ]
        chains[0].state = state
        last = chains[-1]
        vectors = self._run(chains)
        return vectors, self._engine.initial_state(1) if last.state is None else last.state

    def _read_rows(
        self, window: list[Tokens], state: BiLMState | None, *, rows: int
    ) -> tuple[dict[int, _Vectors], BiLMState]:
        """Continue the rows in parallel; the window has one sentence per row."""
        memory = RowMemory()
        if state is not None:
            memory.keep(state)
        starts = memory.recall(self._engine.initial_state(len(window)))
        chains = [
            Chain([(row, sentence)], state=starts[row : row + 1])
            for row, sentence in enumerate(window)
        ]
        vectors = self._run(chains)
        memory.keep(join([chain.state for chain in chains if chain.state is not None]))
        return vectors, memory.recall(self._engine.initial_state(rows))

    def _run(self, chains: Iterable[Chain]) -> dict[int, _Vectors]:
        """Return the result for each sentence, by its number."""
        return dict(chain.from_iterable(self._engine.run(chains, self._number_vectors)))

    def _check(self, sentences: Iterable[Tokens], *, num_before: int) -> Iterator[Tokens]:
        for number, sentence in enumerate(sentences, start=num_before + 1):
            refuse_string(sentence)
            if len(sentence) > self._max_sentence_tokens:
                raise DataError(
                    f"sentence {number} has {len(sentence)} tokens, more than max_sentence_tokens "
                    f"= {self._max_sentence_tokens}; split the text, or raise the limit if memory "
                    "allows"
                )
            yield sentence


def cut_windows(
    sentences: Iterable[_Item],
    *,
    max_tokens: int,
    multiple_of: int = 1,
    size: Callable[[Any], int] = len,
) -> Iterator[list[_Item]]:
    """Yield windows of at least `max_tokens` tokens, in whole groups of `multiple_of` sentences.

    The last window may be smaller. `size` returns the number of tokens of a sentence. Sentences are
    consumed only when needed.
    """
    window: list[_Item] = []
    num_tokens = 0
    for sentence in sentences:
        window.append(sentence)
        num_tokens += size(sentence) + NUM_MARKERS
        if num_tokens >= max_tokens and len(window) % multiple_of == 0:
            yield window
            window, num_tokens = [], 0
    if window:
        yield window


def chain_documents(sentences: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return the indices of each document's sentences; an empty sentence ends a document.

    The first document may have started in the previous window and the last may continue in the
    next; either may be empty.

    >>> chain_documents([["a"], ["b"], [], ["c"]])
    [[0, 1], [3]]
    """
    chains: list[list[int]] = [[]]
    for number, sentence in enumerate(sentences):
        if sentence:
            chains[-1].append(number)
        else:
            chains.append([])
    return chains
