"""Score sentences token by token, and find the words that fit a gap.

Shapes: n tokens of a sentence, D the output of one direction, V words.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from elmore.config import StatePolicy
from elmore.errors import ConfigError, DataError
from elmore.lm.language_model import LanguageModel
from elmore.lm.perplexity import WordIds, pair_with_targets
from elmore.read.documents import DocumentReader
from elmore.text.batches import Tokens
from elmore.text.vocabulary import BEGIN_WORD, END_WORD, UNKNOWN_WORD

GAP = "___"
# Sentences scored together.
WINDOW = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class SentenceScore:
    """Natural log-probabilities of the symbols that each direction predicts."""

    tokens: list[str]
    is_known: list[bool]  # False for a token outside the vocabulary, scored as <UNK>
    forward_lm: list[float]  # n + 1 numbers: w1 .. wn </S>, each given all symbols before it
    backward_lm: list[float]  # n + 1 numbers: <S> w1 .. wn, each given all symbols after it

    @property
    def forward_per_token(self) -> list[float]:
        """The forward LM's log-probability of each token, without that of the end."""
        return self.forward_lm[:-1]

    @property
    def backward_per_token(self) -> list[float]:
        """The backward LM's log-probability of each token, without that of the beginning."""
        return self.backward_lm[1:]

    @property
    def forward_total(self) -> float:
        """The forward LM's log-probability of the sentence."""
        return sum(self.forward_lm)

    @property
    def backward_total(self) -> float:
        """The backward LM's log-probability of the sentence."""
        return sum(self.backward_lm)

    @property
    def mean_total(self) -> float:
        """The mean of both directions: not a log-probability, but good for ranking."""
        return (self.forward_total + self.backward_total) / 2


@dataclass(frozen=True, kw_only=True, slots=True)
class GapFilling:
    """A candidate word for the gap."""

    word: str
    forward_lm: float  # log-probability of the whole sentence with it
    backward_lm: float
    probability: float  # among the candidates

    @property
    def mean(self) -> float:
        """The score that candidates are ranked by."""
        return (self.forward_lm + self.backward_lm) / 2


def score_sentences(
    language_model: LanguageModel, sentences: Iterable[Tokens]
) -> Iterator[SentenceScore]:
    """Score each sentence on its own, in order, from the model's initial state."""
    reader = make_reader(language_model)
    words = WordIds(language_model.words)
    iterator = iter(sentences)
    while window := list(islice(iterator, WINDOW)):
        scores: dict[int, SentenceScore] = {}
        for batch in reader.read([window]):
            predictions = pair_with_targets(batch, words)
            losses = language_model.softmax.losses(
                torch.cat([predictions.forward_lm, predictions.backward_lm]),
                torch.cat([predictions.forward_targets, predictions.backward_targets]),
            )
            sizes = [len(sentence) + 1 for sentence in batch.sentences]
            forward_lm, backward_lm = (-losses).double().cpu().tensor_split(2)
            for number, sentence, ahead, back in zip(
                batch.numbers,
                batch.sentences,
                forward_lm.split(sizes),
                backward_lm.split(sizes),
                strict=True,
            ):
                scores[number] = SentenceScore(
                    tokens=list(sentence),
                    is_known=[token in words for token in sentence],
                    forward_lm=ahead.tolist(),
                    backward_lm=back.tolist(),
                )
        empty = SentenceScore(tokens=[], is_known=[], forward_lm=[], backward_lm=[])
        for number in range(len(window)):
            yield scores.get(number, empty)


def fill_gap(
    language_model: LanguageModel,
    tokens: Tokens,
    *,
    top: int = 10,
    num_candidates: int = 50,
) -> list[GapFilling]:
    """Return the `top` words for the one gap `___`, best first.

    Candidates are the words with the highest log p(w | left) + log p(w | right) - log p(w). Each is
    then put into the sentence, and they are ranked by both directions' score of that sentence.
    """
    for name, number in (("top", top), ("num_candidates", num_candidates)):
        if number < 1:
            raise ConfigError(f"{name} is {number}; expected a whole number of at least 1")
    gap = check_gap(tokens)
    candidates = _find_candidates(language_model, tokens, gap=gap, number=max(top, num_candidates))
    tried = [[*tokens[:gap], word, *tokens[gap + 1 :]] for word in candidates]
    scores = list(score_sentences(language_model, tried))
    means = torch.tensor([score.mean_total for score in scores], dtype=torch.float64)
    fillings = [
        GapFilling(
            word=word,
            forward_lm=score.forward_total,
            backward_lm=score.backward_total,
            probability=probability,
        )
        for word, score, probability in zip(
            candidates, scores, means.softmax(dim=0).tolist(), strict=True
        )
    ]
    return sorted(fillings, key=lambda filling: -filling.mean)[:top]


def check_gap(tokens: Tokens) -> int:
    """Return the position of the one gap."""
    gaps = [position for position, token in enumerate(tokens) if token == GAP]
    if len(gaps) != 1:
        raise DataError(
            f"expected exactly one gap, found {len(gaps)}; write the gap as {GAP}, with spaces "
            "around it"
        )
    return gaps[0]


def _find_candidates(
    language_model: LanguageModel, tokens: Tokens, *, gap: int, number: int
) -> list[str]:
    """Return the words that fit the context on both sides of the gap best."""
    # Neither of the two outputs has read the gap itself.
    (batch,) = make_reader(language_model).read([[tokens]])
    outputs = batch.layers[-1]
    dim = outputs.shape[1] // 2
    position = gap + 1  # after the start marker
    sides = torch.stack([outputs[position - 1, :dim], outputs[position + 1, dim:]])
    scores = _weigh(language_model, sides)
    excluded = {BEGIN_WORD, END_WORD, UNKNOWN_WORD, GAP, ""}
    is_word = torch.tensor([word not in excluded for word in language_model.words])
    scores = scores.masked_fill(~is_word, -torch.inf)
    best = scores.topk(min(number, int(is_word.sum()))).indices.tolist()
    return [language_model.words[index] for index in best]


@torch.no_grad()
def _weigh(language_model: LanguageModel, sides: Tensor) -> Tensor:
    """Return (V,) scores from the (2, D) outputs before and after the gap."""
    ahead, back = language_model.softmax.log_probs(sides).double().cpu()
    return ahead + back - language_model.log_shares.double().cpu()


def make_reader(language_model: LanguageModel) -> DocumentReader:
    """Return a reader that starts every sentence from the model's initial state."""
    language_model.elmo.require_weights()
    return DocumentReader(
        language_model.elmo.bilm, language_model.elmo.speller, policy=StatePolicy.RESET
    )
