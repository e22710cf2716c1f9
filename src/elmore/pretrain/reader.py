"""Read documents with a biLM under a state policy, in batches; how they are cut changes no number.

Shapes: B sentences, N their tokens in all (markers included), D one direction.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from elmore.config import StatePolicy
from elmore.model.bilm import BiLM
from elmore.model.rows import extend_rows
from elmore.model.state import BiLMState, join
from elmore.text.batches import NUM_MARKERS, Speller, place_tokens, refuse_string

Sentence = Sequence[str]
Document = Sequence[Sentence]

NUM_LANES = 64
TOKENS_PER_BATCH = 4096
# Text that waits to be read, so that long documents begin first and like lengths meet.
WAITING_TOKENS = 1 << 17
MAX_KEPT_TOKENS = 1 << 16


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadBatch:
    """Sentences that were read side by side."""

    sentences: list[Sentence]
    numbers: list[int]  # each sentence's place in the text
    outputs: Tensor  # (N, 2D) top layer, sentence after sentence, markers included
    state: BiLMState  # of each sentence at its end: forward LM after </S>, backward LM after <S>

    @property
    def lengths(self) -> list[int]:
        """Symbols of each sentence."""
        return [len(sentence) + NUM_MARKERS for sentence in self.sentences]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Numbered:
    number: int
    sentence: Sentence


class DocumentReader:
    """A biLM, and how it is to read; weights must not change while it does."""

    def __init__(
        self,
        bilm: BiLM,
        speller: Speller,
        *,
        policy: StatePolicy,
        initial_state: BiLMState | None = None,
        num_lanes: int = NUM_LANES,
        tokens_per_batch: int = TOKENS_PER_BATCH,
    ) -> None:
        self.bilm = bilm
        self.policy = policy
        own = bilm.initial_state(1)
        self.initial = own if initial_state is None else initial_state.like(own)
        self.num_lanes = num_lanes
        self.tokens_per_batch = tokens_per_batch
        self._tokens = _TokenTable(bilm, speller)

    def read(self, documents: Iterable[Document]) -> Iterator[ReadBatch]:
        """Read every sentence once; one without tokens is passed over."""
        numbered = _number(documents)
        match self.policy:
            case StatePolicy.RESET:
                return self._read_alone(chain.from_iterable(numbered))
            case StatePolicy.DOCUMENT:
                chains = _longest_first(numbered, waiting_tokens=WAITING_TOKENS)
                return self._read_chains(chains, num_lanes=self.num_lanes)
            case StatePolicy.STREAM:
                return self._read_chains(iter([chain.from_iterable(numbered)]), num_lanes=1)

    def _read_alone(self, sentences: Iterator[_Numbered]) -> Iterator[ReadBatch]:
        """Read every sentence from the initial state."""
        for window in _cut_windows(sentences, num_tokens=WAITING_TOKENS):
            for places in cut_batches(window, max_tokens=self.tokens_per_batch):
                state = self.initial[[0] * len(places)]
                yield self._run([window[place] for place in places], state)

    def _read_chains(
        self, chains: Iterator[Iterable[_Numbered]], *, num_lanes: int
    ) -> Iterator[ReadBatch]:
        """Read chains of sentences in lanes; a lane at the end of its chain takes the next one."""
        lanes = [_Lane(self.initial) for _ in range(num_lanes)]
        while True:
            taken = [(lane, lane.take(chains)) for lane in lanes]
            active = [(lane, item) for lane, item in taken if item is not None]
            if not active:
                return
            lanes = [lane for lane, _ in active]
            items = [item for _, item in active]
            for places in cut_batches(items, max_tokens=self.tokens_per_batch):
                state = join([lanes[place].state for place in places])
                batch = self._run([items[place] for place in places], state)
                for row, place in enumerate(places):
                    lanes[place].state = batch.state[row : row + 1]
                yield batch

    @torch.no_grad()
    def _run(self, items: list[_Numbered], state: BiLMState) -> ReadBatch:
        sentences = [item.sentence for item in items]
        lengths = torch.tensor([len(sentence) + NUM_MARKERS for sentence in sentences])
        output = self.bilm.contextualize(self._tokens.find(sentences), lengths, state)
        return ReadBatch(
            sentences=sentences,
            numbers=[item.number for item in items],
            outputs=output.layers[-1],
            state=output.state,
        )


class _Lane:
    """One of the places where chains of sentences are read side by side."""

    def __init__(self, initial: BiLMState) -> None:
        self._initial = initial
        self._sentences: Iterator[_Numbered] = iter(())
        self.state = initial

    def take(self, chains: Iterator[Iterable[_Numbered]]) -> _Numbered | None:
        """Return the next sentence to read, of the next chain if need be; None at the end."""
        while True:
            item = next(self._sentences, None)
            if item is not None:
                return item
            following = next(chains, None)
            if following is None:
                return None
            self._sentences, self.state = iter(following), self._initial


class _TokenTable:
    """The vectors of tokens met so far; it begins anew when it is full."""

    def __init__(self, bilm: BiLM, speller: Speller) -> None:
        self._bilm = bilm
        self._speller = speller
        self._places: dict[str, int] = {}
        self._table: Tensor | None = None

    def find(self, sentences: list[Sentence]) -> Tensor:
        """Return the vectors of all tokens of some sentences, markers included: (N, D)."""
        for sentence in sentences:
            refuse_string(sentence)
        distinct = dict.fromkeys(chain.from_iterable(sentences))
        new = [token for token in distinct if token not in self._places]
        if self._table is None or len(self._places) + len(new) > MAX_KEPT_TOKENS:
            self._places, new = {}, list(distinct)
            self._table = self._encode(new, with_markers=True)
        elif new:
            start = NUM_MARKERS + len(self._places)
            end = start + len(new)
            if end > len(self._table):
                self._table = extend_rows(self._table, max(end, 2 * len(self._table)))
            self._table[start:end] = self._encode(new, with_markers=False)
        for token in new:
            self._places[token] = NUM_MARKERS + len(self._places)
        return self._table[place_tokens(sentences, self._places).to(self._table.device)]

    def _encode(self, tokens: list[str], *, with_markers: bool) -> Tensor:
        ids = self._speller.spell(tokens, with_markers=with_markers)
        ids = ids.to(self._bilm.initial_hidden.device)
        return self._bilm.token_encoder(ids.char_ids, ids.word_ids)


def zero_state(bilm: BiLM) -> BiLMState:
    """Return the state of one sentence before which there was nothing, whatever the model's own."""
    own = bilm.initial_state(1)
    return BiLMState(hidden=torch.zeros_like(own.hidden), cell=torch.zeros_like(own.cell))


def count_predictions(document: Document) -> int:
    """Count what either direction predicts: the tokens, and the marker at the end."""
    return sum(len(sentence) + 1 for sentence in document if sentence)


def take_documents(
    documents: Iterable[Document], *, max_tokens: int | None = None
) -> Iterator[Document]:
    """Yield documents up to the one with which `max_tokens` are predicted."""
    num_tokens = 0
    for document in documents:
        yield document
        num_tokens += count_predictions(document)
        if max_tokens is not None and num_tokens >= max_tokens:
            return


def cut_batches(items: Sequence[_Numbered], *, max_tokens: int) -> Iterator[list[int]]:
    """Group the places of sentences, of like length together, the longest first."""
    batch: list[int] = []
    num_tokens = 0
    lengths = [len(item.sentence) + NUM_MARKERS for item in items]
    for place in sorted(range(len(items)), key=lambda place: -lengths[place]):
        if batch and num_tokens + lengths[place] > max_tokens:
            yield batch
            batch, num_tokens = [], 0
        batch.append(place)
        num_tokens += lengths[place]
    if batch:
        yield batch


def _number(documents: Iterable[Document]) -> Iterator[list[_Numbered]]:
    number = 0
    for document in documents:
        numbered = [
            _Numbered(number=number + place, sentence=sentence)
            for place, sentence in enumerate(document)
            if sentence
        ]
        number += len(document)
        if numbered:
            yield numbered


def _cut_windows(sentences: Iterator[_Numbered], *, num_tokens: int) -> Iterator[list[_Numbered]]:
    window: list[_Numbered] = []
    num_gathered = 0
    for item in sentences:
        window.append(item)
        num_gathered += len(item.sentence) + NUM_MARKERS
        if num_gathered >= num_tokens:
            yield window
            window, num_gathered = [], 0
    if window:
        yield window


def _longest_first(
    documents: Iterator[list[_Numbered]], *, waiting_tokens: int
) -> Iterator[list[_Numbered]]:
    """Yield the longest of the documents at hand, and read on while they have too few tokens."""
    waiting: list[tuple[int, int, list[_Numbered]]] = []
    num_waiting = 0
    while True:
        while num_waiting < waiting_tokens:
            document = next(documents, None)
            if document is None:
                break
            num_tokens = sum(len(item.sentence) for item in document)
            heapq.heappush(waiting, (-num_tokens, document[0].number, document))
            num_waiting += num_tokens
        if not waiting:
            return
        negative, _, document = heapq.heappop(waiting)
        num_waiting += negative
        yield document
