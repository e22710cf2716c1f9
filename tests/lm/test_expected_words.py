import pytest
import torch

from elmore.errors import ConfigError
from elmore.lm.language_model import LanguageModel
from tests.tiny import TRAINED_MODEL

SENTENCE = ["The", "man", "opened", "the", "door", "."]


@pytest.fixture(scope="module")
def language_model():
    return LanguageModel.load(TRAINED_MODEL)


def test_expected_words_have_the_probabilities_that_scores_show(language_model):
    """With each expected word in its place, the sentence's score has the same number there."""
    (expected,) = language_model.expect([SENTENCE], top=3)
    assert [found.token for found in expected] == SENTENCE
    for place, found in enumerate(expected):
        words = [word for word, _ in (*found.forward_lm, *found.backward_lm)]
        tried = [[*SENTENCE[:place], word, *SENTENCE[place + 1 :]] for word in words]
        scores = list(language_model.score(tried))
        wanted = [score.forward_lm[place] for score in scores[:3]]
        wanted += [score.backward_lm[place + 1] for score in scores[3:]]
        numbers = [number for _, number in (*found.forward_lm, *found.backward_lm)]
        assert numbers == pytest.approx(wanted, abs=1e-4)
        assert sorted(numbers[:3], reverse=True) == numbers[:3]


def test_sentences_keep_their_order_and_empty_ones_expect_nothing(language_model):
    sentences = [["a"], [], ["The", "man"], ["a"]]
    found = list(language_model.expect(sentences, top=1))
    assert [[each.token for each in words] for words in found] == sentences
    assert found[0] == found[3]


def test_excluded_words_are_left_out(language_model):
    (usual,) = language_model.expect([["The", "man"]], top=2)
    best = usual[1].forward_lm[0][0]
    (found,) = language_model.expect([["The", "man"]], top=2, excluded=[best, "no such word"])
    assert found[1].forward_lm[0] == usual[1].forward_lm[1]


def test_all_words_together_have_probability_one(language_model):
    (found,) = language_model.expect([["The"]], top=10**9)
    total = torch.tensor([number for _, number in found[0].forward_lm]).double().exp().sum()
    assert total.item() == pytest.approx(1.0, abs=1e-4)
    with pytest.raises(ConfigError, match="top is 0"):
        next(language_model.expect([["The"]], top=0))
