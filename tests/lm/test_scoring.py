"""Scores are those of the formulas; a gap is filled as trying every word would fill it."""

import math
from dataclasses import replace

import pytest
import torch

from elmore.errors import ConfigError, DataError
from elmore.lm import scoring
from elmore.lm.scoring import GAP, fill_gap, score_sentences
from elmore.text.tokens import split_tokens
from tests.lm.slow_language_model import (
    SENTENCES,
    WORDS,
    SlowLanguageModel,
    double,
    make_language_model,
)

GAPPED = [
    ["the", GAP, "sat", "."],
    [GAP, "ran"],
    ["a", "cat", GAP],
    [GAP],
]


def test_scores_are_those_of_the_formulas_in_the_order_given(monkeypatch):
    monkeypatch.setattr(scoring, "WINDOW", 4)
    model = make_language_model()
    slow = SlowLanguageModel(model)
    found = list(score_sentences(double(model), iter([*SENTENCES, []])))
    for sentence, score in zip(SENTENCES, found[:-1], strict=True):
        forward_lm, backward_lm, _ = slow.score(sentence)
        assert score.tokens == sentence
        assert score.is_known == [token in WORDS for token in sentence]
        assert score.forward_lm == pytest.approx(forward_lm, abs=1e-10)
        assert score.backward_lm == pytest.approx(backward_lm, abs=1e-10)
        assert score.forward_total == pytest.approx(sum(forward_lm))
        assert score.forward_per_token == score.forward_lm[: len(score.tokens)]
        assert [score.backward_lm[0], *score.backward_per_token] == score.backward_lm
        assert score.mean_total == pytest.approx((sum(forward_lm) + sum(backward_lm)) / 2)
    assert (found[-1].tokens, found[-1].forward_total) == ([], 0)


def brute_force(model, tokens):
    """Every word's forward and backward score of the whole sentence, the best first."""
    slow = SlowLanguageModel(model)
    gap = tokens.index(GAP)
    scores = {}
    for word in WORDS[3:]:
        forward_lm, backward_lm, _ = slow.score([*tokens[:gap], word, *tokens[gap + 1 :]])
        scores[word] = (sum(forward_lm), sum(backward_lm))
    return dict(sorted(scores.items(), key=lambda item: -sum(item[1])))


@pytest.mark.parametrize("tokens", GAPPED)
def test_a_gap_is_filled_as_by_trying_every_word(tokens):
    model = make_language_model()
    wanted = brute_force(model, tokens)
    found = fill_gap(model, tokens, top=100)
    assert [filling.word for filling in found] == list(wanted)
    total = sum(math.exp(sum(scores) / 2) for scores in wanted.values())
    for filling, scores in zip(found, wanted.values(), strict=True):
        assert (filling.forward_lm, filling.backward_lm) == pytest.approx(scores, abs=1e-4)
        assert filling.probability == pytest.approx(math.exp(sum(scores) / 2) / total, rel=1e-3)
    assert fill_gap(model, tokens, top=2) == found[:2]


@pytest.mark.parametrize("tokens", GAPPED)
def test_candidates_are_what_both_sides_expect_beyond_the_words_share(tokens):
    model = make_language_model()
    slow = SlowLanguageModel(model)
    gap = tokens.index(GAP)
    scores = {}
    for word in WORDS[3:]:
        forward_lm, backward_lm, _ = slow.score([*tokens[:gap], word, *tokens[gap + 1 :]])
        share = float(model.log_shares[WORDS.index(word)])
        scores[word] = forward_lm[gap] + backward_lm[gap + 1] - share
    wanted = sorted(scores, key=lambda word: -scores[word])[:3]
    found = fill_gap(model, tokens, top=1, num_candidates=3)
    tried = fill_gap(model, tokens, top=3, num_candidates=3)
    assert {filling.word for filling in tried} == set(wanted)
    assert sum(filling.probability for filling in tried) == pytest.approx(1)
    assert found == tried[:1]


def test_markers_the_unknown_word_and_the_gap_itself_never_fill_a_gap():
    model = make_language_model()
    with torch.no_grad():
        model.softmax.bias[:3] = 50.0
        model.softmax.bias[7] = 50.0
    words = [*WORDS[:7], GAP, *WORDS[8:]]
    found = fill_gap(replace(model, words=words), ["the", GAP], top=100)
    assert {filling.word for filling in found} == set(words[3:]) - {GAP}


@pytest.mark.parametrize("tokens", [["no", "gap"], [GAP, "and", GAP], ["____"], []])
def test_exactly_one_gap_is_expected(tokens):
    with pytest.raises(DataError, match="expected exactly one gap"):
        fill_gap(make_language_model(), tokens)


def test_a_number_below_one_is_refused():
    with pytest.raises(ConfigError, match="top is 0"):
        fill_gap(make_language_model(), [GAP], top=0)


def test_an_adaptive_softmax_fills_gaps_too():
    model = make_language_model(is_adaptive=True)
    found = fill_gap(model, ["the", GAP, "ran"], top=100)
    sentences = [["the", filling.word, "ran"] for filling in found]
    scores = list(score_sentences(model, sentences))
    assert [f.forward_lm for f in found] == pytest.approx([s.forward_total for s in scores])
    assert len(found) == len(WORDS) - 3


@pytest.mark.parametrize(
    "text", ["The ___ raised rates.", "He is ___.", '"___," he said.', "(the ___)", "the ___'s"]
)
def test_a_gap_in_plain_text_stays_one_token(text):
    assert split_tokens(text).count(GAP) == 1
