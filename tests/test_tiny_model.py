"""A trained model that comes with the tests (recipes/tiny) has learned what its text can teach."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import elmore
from elmore.config import StatePolicy
from elmore.lm.language_model import load_language_model
from elmore.lm.network import complete_config
from elmore.lm.perplexity import measure_losses
from elmore.lm.scoring import GAP, fill_gap
from elmore.lm.settings import load_settings
from recipes.tiny.make_text import Grammar, make_sentences
from tests.tiny import TRAINED_MODEL

ROOT = Path(__file__).parents[1]
OTHER_SEED = 2  # the model was trained on the text of seed 1


@pytest.fixture(scope="module")
def sentences():
    return list(make_sentences(num_sentences=1200, seed=OTHER_SEED))


@pytest.fixture(scope="module")
def embedder():
    return elmore.load(TRAINED_MODEL)


def test_the_model_is_small_and_that_of_the_recipe(embedder):
    assert sum(path.stat().st_size for path in TRAINED_MODEL.iterdir()) < 1_000_000
    settings = load_settings(ROOT / "recipes" / "tiny" / "settings.toml")
    wanted = complete_config(settings.model, num_characters=0, num_words=0)
    config = embedder.model.config
    assert (config.lstm, config.characters) == (wanted.lstm, wanted.characters)
    assert "For tests" in (TRAINED_MODEL / "README.md").read_text(encoding="utf-8")


def unigram_perplexity(sentences):
    """That of a model which knows how often each word of this very text is used, and no more."""
    counts = Counter(token for tokens in sentences for token in [*tokens, "</S>"])
    total = sum(counts.values())
    return math.exp(-sum(n / total * math.log(n / total) for n in counts.values()))


def test_both_directions_predict_new_text_far_better_than_its_word_counts(sentences):
    text = [sentence.tokens for sentence in sentences[:500]]
    model = load_language_model(TRAINED_MODEL)
    totals = measure_losses(
        model.elmo, model.softmax, model.words, documents=[text], state=StatePolicy.RESET
    )
    assert totals.num_unknown == 0
    assert totals.num_predictions == sum(len(tokens) + 1 for tokens in text)
    for perplexity in (totals.forward_perplexity, totals.backward_perplexity):
        assert perplexity < unigram_perplexity(text) / 10


def agreement(embedder, uses, *, layer, directions=slice(None)):
    """How often the nearest use of a word has its sense, with other words as clues."""
    layers = embedder.embed([use.tokens for use in uses], layers=layer)
    vectors = np.stack([of[use.position, directions] for use, of in zip(uses, layers, strict=True)])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors.T
    for row, use in zip(cosines, uses, strict=True):
        row[[bool(use.clues & other.clues) for other in uses]] = -np.inf
    nearest = cosines.argmax(axis=1)
    return np.mean([use.sense == uses[i].sense for use, i in zip(uses, nearest, strict=True)])


@pytest.mark.slow
def test_nearest_contexts_agree_in_sense_above_the_tokens(embedder, sentences):
    words = [[use for use in sentences if use.word == word] for word in Grammar().senses]

    def mean(**choice):
        return np.mean([agreement(embedder, uses, **choice) for uses in words])

    both, tokens_alone = mean(layer=2), mean(layer=0)
    assert both > max(0.7, tokens_alone + 0.2)
    dim = embedder.vector_dim // 2
    for direction in (slice(0, dim), slice(dim, None)):
        assert tokens_alone + 0.1 < mean(layer=2, directions=direction) < both


def test_gaps_in_new_text_are_filled_with_the_word_that_was_there(sentences):
    model = load_language_model(TRAINED_MODEL)
    uses = [sentence for sentence in sentences if sentence.word][:20]
    num_right = 0
    for use in uses:
        tokens = [*use.tokens]
        tokens[use.position] = GAP
        (best,) = fill_gap(model, tokens, top=1)
        num_right += best.word.lower() == use.word
    assert num_right >= 18


def test_the_command_fills_a_gap(elmore_command):
    gap = "Ben sat fishing on the ___ of the river ."
    result = elmore_command("score", "--model", TRAINED_MODEL, "--gap", gap, "--top", 3, "--json")
    assert result.status == 0
    assert result.json["fillings"][0]["word"] == "bank"
    assert result.json["fillings"][0]["probability"] > 0.5
