"""Which words each direction expects at every token of a sentence.

Shapes: n tokens of a sentence, D the output of one direction, V words.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise

import torch
from torch import Tensor

from elmore.errors import ConfigError
from elmore.lm.language_model import LanguageModel
from elmore.lm.scoring import WINDOW, make_reader
from elmore.text.batches import Tokens

Expected = list[tuple[str, float]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectedWords:
    """The most probable words at one token's position, with their log-probabilities, best first."""

    token: str
    forward_lm: Expected  # after all tokens before it
    backward_lm: Expected  # before all tokens after it


def expect_words(
    language_model: LanguageModel,
    sentences: Iterable[Tokens],
    *,
    top: int,
    excluded: Sequence[str] = (),
) -> Iterator[list[ExpectedWords]]:
    """Yield the `top` words for each token of each sentence, without the `excluded` ones."""
    if top < 1:
        raise ConfigError(f"top is {top}; give a whole number from 1")
    reader = make_reader(language_model)
    waiting = iter(sentences)
    while window := list(islice(waiting, WINDOW)):
        found: dict[int, list[ExpectedWords]] = {}
        for batch in reader.read([window]):
            ends = accumulate(batch.lengths, initial=0)
            for number, sentence, (start, end) in zip(
                batch.numbers, batch.sentences, pairwise(ends), strict=True
            ):
                outputs = batch.layers[-1, start:end]
                found[number] = _expect(
                    language_model, sentence, outputs, top=top, excluded=excluded
                )
        yield from (found.get(number, []) for number in range(len(window)))


@torch.no_grad()
def _expect(
    language_model: LanguageModel,
    sentence: Tokens,
    outputs: Tensor,
    *,
    top: int,
    excluded: Sequence[str],
) -> list[ExpectedWords]:
    """Return the words for each token from the (n + 2, 2D) outputs of its sentence."""
    words = language_model.words
    dim = outputs.shape[1] // 2
    sides = torch.cat([outputs[:-2, :dim], outputs[2:, dim:]])
    log_probs = language_model.softmax.log_probs(sides).cpu()  # (2n, V)
    excluded_ids = [words.index(word) for word in excluded if word in words]
    log_probs[:, excluded_ids] = -torch.inf
    best = log_probs.topk(min(top, len(words) - len(excluded_ids)))
    expected = [
        [(words[word_id], value) for word_id, value in zip(ids, values, strict=True)]
        for ids, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
    return [
        ExpectedWords(token=token, forward_lm=ahead, backward_lm=back)
        for token, ahead, back in zip(
            sentence, expected[: len(sentence)], expected[len(sentence) :], strict=True
        )
    ]
