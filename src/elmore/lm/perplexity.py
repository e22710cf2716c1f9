"""Perplexity: predict every token of a text once in each direction, with the full softmax.

Shapes: N predictions of one direction, D its output, V words.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from elmore.config import StatePolicy
from elmore.errors import ConfigError, DataError
from elmore.model.state import BiLMState
from elmore.model.word_softmax import WordSoftmax
from elmore.read.documents import (
    NUM_LANES,
    TOKENS_PER_BATCH,
    DocumentReader,
    take_documents,
)
from elmore.read.engine import ReadBatch
from elmore.text.batches import Document, Tokens
from elmore.text.vocabulary import BEGIN_WORD, END_WORD, UNKNOWN_WORD, number_entries
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.softmax_file import Softmax

# Rows per softmax call; fewer would not keep the processor busy.
ROWS_PER_CALL = 8192
MAX_EXPONENT = 700.0  # exp overflows soon after


@dataclass(frozen=True, kw_only=True)
class LossTotals:
    """The total loss on a text; totals can be added."""

    forward_lm: float = 0.0  # sum of -log p, in nats
    backward_lm: float = 0.0
    num_predictions: int = 0  # in one direction: the tokens and one marker per sentence
    num_characters: int = 0  # of the tokens, with one separator after each
    num_tokens: int = 0
    num_unknown: int = 0  # tokens outside the vocabulary, predicted as <UNK>

    def __add__(self, other: "LossTotals") -> "LossTotals":
        return LossTotals(
            **{
                item.name: getattr(self, item.name) + getattr(other, item.name)
                for item in fields(LossTotals)
            }
        )

    @classmethod
    def from_numbers(cls, numbers: Sequence[float]) -> "LossTotals":
        """Make totals from numbers in the order of the fields, as exchanged between processes."""
        forward_lm, backward_lm, *counts = numbers
        names = [item.name for item in fields(cls)][2:]
        whole = {name: round(count) for name, count in zip(names, counts, strict=True)}
        return cls(forward_lm=forward_lm, backward_lm=backward_lm, **whole)

    @property
    def forward_perplexity(self) -> float:
        """Perplexity of the forward LM."""
        return _exp(self.forward_lm / self._check_predictions())

    @property
    def backward_perplexity(self) -> float:
        """Perplexity of the backward LM."""
        return _exp(self.backward_lm / self._check_predictions())

    @property
    def perplexity(self) -> float:
        """Perplexity of both directions, from the mean of their losses."""
        return _exp(self._mean / self._check_predictions())

    @property
    def bits_per_character(self) -> float:
        """The mean loss of both directions in bits per character.

        It does not depend on the tokenization, as long as every token is in the vocabulary.
        """
        self._check_predictions()
        return self._mean / math.log(2) / max(1, self.num_characters)

    @property
    def unknown_share(self) -> float:
        """The fraction of tokens outside the vocabulary."""
        return self.num_unknown / max(1, self.num_tokens)

    @property
    def _mean(self) -> float:
        return (self.forward_lm + self.backward_lm) / 2

    def _check_predictions(self) -> int:
        if not self.num_predictions:
            raise DataError("the text has no tokens to measure; give a text that has some")
        return self.num_predictions


def _exp(loss: float) -> float:
    return math.exp(loss) if loss < MAX_EXPONENT else math.inf


class WordIds:
    """Maps tokens to the word ids of a softmax; unknown tokens get the id of `<UNK>`."""

    def __init__(self, words: Sequence[str]) -> None:
        self._ids: Mapping[str, int] = number_entries(words)
        self.begin, self.end, self.unknown = (
            self._ids[name] for name in (BEGIN_WORD, END_WORD, UNKNOWN_WORD)
        )

    def find(self, sentences: Iterable[Tokens]) -> Tensor:
        """Return the ids of all symbols of the sentences, including markers."""
        ids: list[int] = []
        for sentence in sentences:
            ids.append(self.begin)
            ids.extend(self._ids.get(token, self.unknown) for token in sentence)
            ids.append(self.end)
        return torch.from_numpy(np.fromiter(ids, np.int64, count=len(ids)))

    def __contains__(self, token: str) -> bool:
        return self._ids.get(token, self.unknown) != self.unknown


@dataclass(frozen=True, kw_only=True, slots=True)
class Predictions:
    """Outputs and targets of both directions, sentence after sentence."""

    forward_lm: Tensor  # (N, D) outputs at <S> w1 .. wn
    forward_targets: Tensor  # (N,) ids of w1 .. wn </S>
    backward_lm: Tensor  # (N, D) outputs at w1 .. wn </S>
    backward_targets: Tensor  # (N,) ids of <S> w1 .. wn


def pair_with_targets(batch: ReadBatch, words: WordIds) -> Predictions:
    """Pair each output with its target: the next word, or for the backward LM the previous one."""
    outputs = batch.layers[-1]  # (N, 2D)
    ids = words.find(batch.sentences).to(outputs.device)
    lengths = torch.tensor(batch.lengths)
    ends = lengths.cumsum(dim=0)
    is_first = torch.zeros(len(ids), dtype=torch.bool)
    is_last = is_first.clone()
    is_first[ends - lengths] = True
    is_last[ends - 1] = True
    before = (~is_last).nonzero()[:, 0].to(ids.device)
    after = (~is_first).nonzero()[:, 0].to(ids.device)
    dim = outputs.shape[1] // 2
    return Predictions(
        forward_lm=outputs[before, :dim],
        forward_targets=ids[after],
        backward_lm=outputs[after, dim:],
        backward_targets=ids[before],
    )


def measure_losses(
    elmo: ElmoModel,
    softmax: Softmax,
    words: Sequence[str],
    *,
    documents: Iterable[Document],
    state: StatePolicy = StatePolicy.DOCUMENT,
    initial_state: BiLMState | None = None,
    max_tokens: int | None = None,
    num_shared: int | None = None,
    unknown_id: int | None = None,
    num_lanes: int = NUM_LANES,
    tokens_per_batch: int = TOKENS_PER_BATCH,
    on_progress: Callable[[int], None] | None = None,
) -> LossTotals:
    """Return the total loss on documents; stop after the document that reaches `max_tokens`.

    `initial_state`, for one sentence, replaces the model's own; `num_shared` and `unknown_id` are
    passed to the softmax. `on_progress` gets the number of predictions so far.
    """
    elmo.require_weights()
    reader = DocumentReader(
        elmo.bilm,
        elmo.speller,
        policy=state,
        initial_state=initial_state,
        num_lanes=num_lanes,
        tokens_per_batch=tokens_per_batch,
    )
    ids = WordIds(words)
    sums = _LossSums(softmax, num_shared=num_shared, unknown_id=unknown_id)
    text = LossTotals()
    for batch in reader.read(take_documents(documents, max_tokens=max_tokens)):
        sums.add(pair_with_targets(batch, ids))
        text += _count_text(batch.sentences, ids)
        if on_progress is not None:
            on_progress(text.num_predictions)
    forward_lm, backward_lm = sums.finish()
    return text + LossTotals(forward_lm=forward_lm, backward_lm=backward_lm)


def _count_text(sentences: list[Tokens], ids: WordIds) -> LossTotals:
    num_tokens = sum(map(len, sentences))
    return LossTotals(
        num_predictions=num_tokens + len(sentences),
        num_characters=num_tokens + sum(map(len, chain.from_iterable(sentences))),
        num_tokens=num_tokens,
        num_unknown=sum(token not in ids for token in chain.from_iterable(sentences)),
    )


class _LossSums:
    """Sums losses in double precision; collects rows until there are enough for a softmax call."""

    def __init__(self, softmax: Softmax, *, num_shared: int | None, unknown_id: int | None) -> None:
        self._losses: Callable[[Tensor, Tensor], Tensor] = softmax.losses
        if num_shared is not None:
            if not isinstance(softmax, WordSoftmax):
                raise ConfigError(
                    "words cannot be left out of an adaptive softmax; measure all of them"
                )
            self._losses = partial(softmax.losses, num_shared=num_shared, unknown_id=unknown_id)
        self._waiting: list[Predictions] = []
        self._num_rows = 0
        self._sums = [0.0, 0.0]

    def add(self, predictions: Predictions) -> None:
        self._waiting.append(predictions)
        self._num_rows += 2 * len(predictions.forward_targets)
        if self._num_rows >= ROWS_PER_CALL:
            self._flush()

    def finish(self) -> tuple[float, float]:
        """Return the sums of the forward and the backward LM."""
        self._flush()
        return self._sums[0], self._sums[1]

    @torch.no_grad()
    def _flush(self) -> None:
        if not self._waiting:
            return
        outputs = [p.forward_lm for p in self._waiting] + [p.backward_lm for p in self._waiting]
        targets = [p.forward_targets for p in self._waiting]
        targets += [p.backward_targets for p in self._waiting]
        losses = self._losses(torch.cat(outputs), torch.cat(targets))
        for direction, part in enumerate(losses.cpu().double().tensor_split(2)):
            self._sums[direction] += float(part.sum())
        self._waiting, self._num_rows = [], 0
