"""Read documents under a state policy in the fastest order, for sums that ignore the order.

Shapes: N tokens of a batch (with markers), D both directions of one layer.
"""

import heapq
from collections.abc import Iterable, Iterator
from itertools import chain

import torch

from elmore.config import StatePolicy
from elmore.model.state import BiLMState
from elmore.read.engine import Chain, Engine, ReadBatch
from elmore.read.reader import Reader
from elmore.read.token_cache import TokenCache
from elmore.read.windows import cut_windows
from elmore.text.batches import Document, Speller, Tokens

NUM_LANES = 64
TOKENS_PER_BATCH = 4096
# Tokens to buffer, so that long documents start first and similar lengths share batches.
WAITING_TOKENS = 1 << 17
MAX_KEPT_TOKENS = 1 << 16


class DocumentReader:
    """Reads documents with a network, whose weights must not change meanwhile."""

    def __init__(
        self,
        reader: Reader,
        speller: Speller,
        *,
        policy: StatePolicy,
        initial_state: BiLMState | None = None,
        num_lanes: int = NUM_LANES,
        tokens_per_batch: int = TOKENS_PER_BATCH,
    ) -> None:
        self._engine = Engine(
            reader,
            TokenCache(reader, speller, size=MAX_KEPT_TOKENS),
            tokens_per_batch=tokens_per_batch,
            initial=initial_state,
        )
        self._policy = policy
        self._num_lanes = num_lanes

    def read(self, documents: Iterable[Document]) -> Iterator[ReadBatch]:
        """Read every sentence once; numbers count through all documents, empty ones are skipped."""
        numbered = _number(documents)
        match self._policy:
            case StatePolicy.RESET:
                sentences = chain.from_iterable(numbered)
                for window in cut_windows(sentences, max_tokens=WAITING_TOKENS, size=_size):
                    alone = (Chain([item], carries_state=False) for item in window)
                    yield from self._engine.run(alone, _keep)
            case StatePolicy.DOCUMENT:
                chains = map(Chain, _longest_first(numbered))
                yield from self._engine.run(chains, _keep, num_lanes=self._num_lanes)
            case StatePolicy.STREAM:
                yield from self._engine.run([Chain(chain.from_iterable(numbered))], _keep)


def zero_state(reader: Reader) -> BiLMState:
    """Return a zero state for one sentence, ignoring the model's initial state."""
    own = reader.initial_state(1)
    return BiLMState(hidden=torch.zeros_like(own.hidden), cell=torch.zeros_like(own.cell))


def count_predictions(document: Document) -> int:
    """Count the predictions of one direction: the tokens and one marker per sentence."""
    return sum(len(sentence) + 1 for sentence in document if sentence)


def take_documents(
    documents: Iterable[Document], *, max_tokens: int | None = None
) -> Iterator[Document]:
    """Yield documents until they have `max_tokens` predictions; the last one is yielded whole."""
    num_tokens = 0
    for document in documents:
        yield document
        num_tokens += count_predictions(document)
        if max_tokens is not None and num_tokens >= max_tokens:
            return


def _keep(batch: ReadBatch) -> ReadBatch:
    return batch


def _size(item: tuple[int, Tokens]) -> int:
    return len(item[1])


def _number(documents: Iterable[Document]) -> Iterator[list[tuple[int, Tokens]]]:
    number = 0
    for document in documents:
        numbered = [item for item in enumerate(document, start=number) if item[1]]
        number += len(document)
        if numbered:
            yield numbered


def _longest_first(
    documents: Iterator[list[tuple[int, Tokens]]],
) -> Iterator[list[tuple[int, Tokens]]]:
    """Yield the longest buffered document each time, and keep the buffer filled."""
    waiting: list[tuple[int, int, list[tuple[int, Tokens]]]] = []
    num_waiting = 0
    while True:
        while num_waiting < WAITING_TOKENS:
            document = next(documents, None)
            if document is None:
                break
            num_tokens = sum(map(_size, document))
            heapq.heappush(waiting, (-num_tokens, document[0][0], document))
            num_waiting += num_tokens
        if not waiting:
            return
        negative, _, document = heapq.heappop(waiting)
        num_waiting += negative
        yield document
