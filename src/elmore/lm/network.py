"""Build an untrained model and its softmax from settings and a corpus."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmore.config import FORMAT, ModelConfig, Units
from elmore.corpus.corpus import Corpus
from elmore.lm.settings import PretrainSettings, SoftmaxKind
from elmore.model.adaptive_softmax import AdaptiveSoftmax, choose_cutoffs
from elmore.model.word_softmax import WordSoftmax
from elmore.text.characters import CHARACTER_MARKS
from elmore.weights.elmo_model import ElmoModel, new_model

# Characters that occur fewer times in the text are read as unknown.
MIN_CHARACTER_COUNT = 3
WORD_VECTOR_SCALE = 0.1

Softmax = WordSoftmax | AdaptiveSoftmax


def make_model(settings: PretrainSettings, corpus: Corpus) -> ElmoModel:
    """Build a model for a corpus, with random weights drawn from the run's seed."""
    return new_model(
        make_config(settings, corpus),
        seed=settings.training.seed,
        characters=list_characters(settings.model, corpus),
        words=corpus.vocabulary if "words" in settings.model else (),
    )


def make_config(settings: PretrainSettings, corpus: Corpus) -> ModelConfig:
    """Return the config of a model for a corpus."""
    return complete_config(
        settings.model,
        num_characters=len(list_characters(settings.model, corpus)),
        num_words=len(corpus.vocabulary),
    )


def complete_config(
    model: Mapping[str, Any], *, num_characters: int, num_words: int
) -> ModelConfig:
    """Fill in the sizes that depend on the corpus."""
    settings: dict[str, Any] = {**model, "format": FORMAT}
    if num_characters:
        settings["characters"] = {**settings["characters"], "num_units": num_characters}
    if "words" in settings:
        settings["words"] = {**settings["words"], "num_words": num_words}
    return ModelConfig.from_json(settings)


def list_characters(model: Mapping[str, Any], corpus: Corpus) -> list[str]:
    """Return the characters of a corpus, most frequent first, if the model has a character list."""
    characters = model.get("characters")
    if not isinstance(characters, Mapping) or characters.get("units") != Units.CHARACTERS:
        return []
    counts: Counter[str] = Counter()
    for word, count in zip(corpus.vocabulary, corpus.counts.tolist(), strict=True):
        for character in word:
            counts[character] += count
    frequent = [
        character
        for character, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if count >= MIN_CHARACTER_COUNT and character not in "\r\n"
    ]
    return [*CHARACTER_MARKS, *frequent]


def make_softmax(
    settings: PretrainSettings, config: ModelConfig, *, counts: NDArray[np.int64]
) -> Softmax:
    """Build the softmax over words with these counts, with random weights from the run's seed."""
    num_words, dim, seed = len(counts), config.lstm.output_dim, settings.training.seed + 1
    if settings.softmax.kind is SoftmaxKind.ADAPTIVE:
        # Each cluster is a quarter as wide as the one before it.
        num_cutoffs = max(1, int(math.log(dim, 4)))
        cutoffs = choose_cutoffs(num_words)[:num_cutoffs]
        adaptive = AdaptiveSoftmax(num_words=num_words, dim=dim, cutoffs=cutoffs)
        adaptive.initialize(seed=seed)
        return adaptive
    softmax = WordSoftmax(num_words=num_words, dim=dim)
    initialize_softmax(softmax, counts=counts, seed=seed)
    return softmax


@torch.no_grad()
def initialize_softmax(softmax: WordSoftmax, *, counts: NDArray[np.int64], seed: int) -> None:
    """Draw small random vectors, and set the biases to the log frequencies of the words.

    An untrained network would need hundreds of steps to learn the frequencies, and for as long the
    large random vectors of words that are rarely sampled would spoil the full softmax.
    """
    softmax.initialize(seed=seed)
    softmax.weight.mul_(WORD_VECTOR_SCALE)
    softmax.bias.copy_(find_log_shares(counts))


def find_log_shares(counts: NDArray[np.int64]) -> Tensor:
    """Return the log relative frequency of each word; a word with count 0 counts as 0.5.

    >>> [round(share, 3) for share in find_log_shares(np.array([3, 1, 0])).exp().tolist()]
    [0.667, 0.222, 0.111]
    """
    seen = np.maximum(np.asarray(counts, np.float64), 0.5)
    return torch.from_numpy(np.log(seen / seen.sum())).float()
