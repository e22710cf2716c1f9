"""Run tokenised sentences through a biLM, window by window, under a state policy.

Shapes: L layers, D both directions of one layer, N tokens of a batch, markers included.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmore.config import StatePolicy
from elmore.embed.batch_pool import BatchPool
from elmore.embed.layer_choice import LayerChoice
from elmore.embed.plan import chain_documents, cut_batches, cut_windows
from elmore.embed.token_cache import TokenCache
from elmore.errors import ConfigError, DataError
from elmore.model.bilm import BiLM
from elmore.model.packed_bilm import PackedBiLM
from elmore.model.state import BiLMState, RowMemory, join
from elmore.text.batches import NUM_MARKERS, refuse_string

Array = NDArray[np.float32]
Tokens = Sequence[str]

# Batches are cut from windows of this many, so that sentences of like length meet.
BATCHES_IN_WINDOW = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """A stretch of the input with its vectors, and where the LSTMs stand after it."""

    sentences: list[Tokens]
    vectors: list[Array]
    state: BiLMState | None  # None under policy `reset`


class Runner:
    """Cuts the input into batches of bounded size; how it cuts changes no vector.

    `max_rows` bounds a batch too, see `cut_batches`. `num_parallel` batches run at the same time;
    that pays where cores are left over by the two directions of one.
    """

    def __init__(
        self,
        bilm: BiLM | PackedBiLM,
        cache: TokenCache,
        *,
        policy: StatePolicy,
        tokens_per_batch: int,
        max_sentence_tokens: int,
        max_rows: int | None = None,
        num_parallel: int = 1,
    ) -> None:
        self.bilm = bilm
        self.cache = cache
        self.policy = policy
        self.tokens_per_batch = tokens_per_batch
        self.max_sentence_tokens = max_sentence_tokens
        self.max_rows = max_rows
        self.num_parallel = num_parallel

    def windows(
        self,
        sentences: Iterable[Tokens],
        choice: LayerChoice,
        *,
        rows: int = 1,
        state: BiLMState | None = None,
        num_before: int = 0,
    ) -> Iterator[Window]:
        """Embed sentences in order, going on from `state` after `num_before` of them if given.

        Under policy `document` an empty sentence ends a document. Under policy `stream` sentence k
        goes on in row k modulo `rows`, and an empty one is read as a pair of markers.
        """
        if not isinstance(rows, int) or rows < 1:
            raise ConfigError(f"rows is {rows!r}; give a whole number from 1")
        max_tokens, group = self.tokens_per_batch * BATCHES_IN_WINDOW, 1
        if self.policy is StatePolicy.STREAM:
            # One sentence a row: the next of a row waits for it anyway, and the state must not run
            # ahead of who reads the vectors.
            max_tokens, group = 1, rows
        checked = self._check(sentences, num_before=num_before)
        with self._open_pool() as pool:
            for window in cut_windows(checked, max_tokens=max_tokens, multiple_of=group):
                batches = _Batches(self, window, choice, pool)
                match self.policy:
                    case StatePolicy.RESET:
                        batches.run_alone()
                    case StatePolicy.DOCUMENT:
                        state = batches.run_documents(state)
                    case StatePolicy.STREAM:
                        state = batches.run_rows(state, rows=rows)
                yield Window(sentences=window, vectors=batches.collect(), state=state)

    def _open_pool(self) -> AbstractContextManager[BatchPool | None]:
        return nullcontext() if self.num_parallel == 1 else BatchPool(self.num_parallel)

    def _check(self, sentences: Iterable[Tokens], *, num_before: int) -> Iterator[Tokens]:
        for number, sentence in enumerate(sentences, start=num_before + 1):
            refuse_string(sentence)
            if len(sentence) > self.max_sentence_tokens:
                raise DataError(
                    f"sentence {number} has {len(sentence)} tokens, more than max_sentence_tokens "
                    f"= {self.max_sentence_tokens}; split the text, or raise the limit if memory "
                    "allows"
                )
            yield sentence


class _Batches:
    """The batches of one window, and the vectors they gave."""

    def __init__(
        self, runner: Runner, window: list[Tokens], choice: LayerChoice, pool: BatchPool | None
    ) -> None:
        self.runner = runner
        self.window = window
        self.choice = choice
        self.pool = pool
        self.vectors: dict[int, Array] = {}

    def run_alone(self) -> None:
        """Run every sentence from the initial state."""
        places = [place for place, sentence in enumerate(self.window) if sentence]
        self._run_all([([places[item] for item in batch], None) for batch in self._cut(places)])

    def run_documents(self, state: BiLMState | None) -> BiLMState:
        """Run documents side by side; the first goes on from `state`, the last gives the result."""
        chains = chain_documents(self.window)
        initial = self.runner.bilm.initial_state(1)
        starts = [initial if state is None else state] + [initial] * (len(chains) - 1)
        return self._run_chains(chains, starts)[-1]

    def run_rows(self, state: BiLMState | None, *, rows: int) -> BiLMState:
        """Run rows side by side, each from where it was left; the window has a sentence a row."""
        memory = RowMemory()
        if state is not None:
            memory.keep(state)
        chains = [[row] for row in range(len(self.window))]
        starts = memory.recall(self.runner.bilm.initial_state(len(chains)))
        ends = self._run_chains(chains, [starts[row : row + 1] for row in range(len(chains))])
        memory.keep(join(ends))
        return memory.recall(self.runner.bilm.initial_state(rows))

    def collect(self) -> list[Array]:
        """Return the vectors in the order of the window; a sentence of no tokens has none."""
        bilm = self.runner.bilm
        shape = (0, bilm.output_dim)
        empty = np.empty((bilm.num_layers, *shape) if self.choice.keeps_all else shape, np.float32)
        return [self.vectors.get(place, empty) for place in range(len(self.window))]

    def _run_chains(self, chains: list[list[int]], starts: Sequence[BiLMState]) -> list[BiLMState]:
        """Run chains of sentences side by side, each from the end of the one before it."""
        states = list(starts)
        for depth in range(max(len(chain) for chain in chains)):
            active = [number for number, chain in enumerate(chains) if depth < len(chain)]
            places = [chains[number][depth] for number in active]
            batches = list(self._cut(places))
            ends = self._run_all(
                [
                    ([places[item] for item in batch], join([states[active[i]] for i in batch]))
                    for batch in batches
                ]
            )
            for batch, end in zip(batches, ends, strict=True):
                for row, item in enumerate(batch):
                    states[active[item]] = end[row : row + 1]
        return states

    def _cut(self, places: list[int]) -> Iterator[list[int]]:
        lengths = [len(self.window[place]) + NUM_MARKERS for place in places]
        return cut_batches(
            lengths, max_tokens=self.runner.tokens_per_batch, max_rows=self.runner.max_rows
        )

    def _run_all(self, batches: list[tuple[list[int], BiLMState | None]]) -> list[BiLMState]:
        """Run batches that do not wait for each other, each the places and state of sentences."""
        if self.pool is None or len(batches) <= 1:
            return [self._run(places, state) for places, state in batches]
        futures: list[Future[BiLMState]] = [
            self.pool.submit(partial(self._run, places, state)) for places, state in batches
        ]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:  # after an error or an interruption, begin no other
                future.cancel()

    @torch.inference_mode()
    def _run(self, places: list[int], state: BiLMState | None) -> BiLMState:
        """Run one batch, keep its vectors, and return its final state."""
        sentences = [self.window[place] for place in places]
        lengths = np.array([len(sentence) + NUM_MARKERS for sentence in sentences])
        output = self.runner.bilm.contextualize(
            self.runner.cache.find(sentences), torch.from_numpy(lengths), state
        )
        ends = lengths.cumsum().tolist()
        chosen = self._choose(output.layers, ends)
        for place, (start, end) in zip(places, pairwise([0, *ends]), strict=True):
            # Copied, since a slice would keep the whole batch alive.
            self.vectors[place] = chosen[..., start + 1 : end - 1, :].copy()
        return output.state

    def _choose(self, layers: Tensor, ends: list[int]) -> Array:
        """Return (N, D), or (L, N, D) for all layers; `ends` is where each sentence ends."""
        if self.choice.is_per_sentence:
            parts = torch.tensor_split(layers, ends[:-1], dim=1)
            chosen = torch.cat([self.choice(part) for part in parts])
        else:
            chosen = self.choice(layers)
        return chosen.to("cpu", torch.float32).numpy()
