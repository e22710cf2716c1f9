"""Every word is drawn as often as is said, and so the sum over all words has the right mean."""

import numpy as np
import pytest
import torch

from elmore.model.sampling import LogUniformSampler

NUM_DRAWS = 4000


def log_uniform_shares(num_words):
    ranks = np.arange(num_words)
    return np.log((ranks + 2) / (ranks + 1)) / np.log(num_words + 1)


def capped_shares(num_words, num_negatives):
    """min(1, scale * share), with the scale that makes them add up found by halving."""
    shares = log_uniform_shares(num_words)
    low, high = 0.0, num_negatives / shares[-1]
    for _ in range(200):
        scale = (low + high) / 2
        is_short = np.minimum(1, scale * shares).sum() < num_negatives
        low, high = (scale, high) if is_short else (low, scale)
    return np.minimum(1, low * shares)


def draw_many(sampler, *, seed=0):
    """Return (draws, V) weights 1 / expected of the words drawn, 0 for others."""
    rng = np.random.default_rng(seed)
    weights = np.zeros((NUM_DRAWS, sampler.num_words))
    for row in weights:
        drawn = sampler.draw(rng)
        row[drawn.words.numpy()] = np.exp(-drawn.log_expected.double().numpy())
    return weights


def z_scores(samples, truth):
    """Return how many standard errors the mean of (draws, ...) is off."""
    errors = samples.std(axis=0) / len(samples) ** 0.5
    return (samples.mean(axis=0) - truth) / np.maximum(errors, 1e-9)


@pytest.mark.parametrize(
    ("num_words", "num_negatives"),
    [(200, 20), (200, 150), (1000, 1), (5000, 4999), (100_000, 8192)],
)
def test_expected_is_the_capped_share_and_adds_up(num_words, num_negatives):
    sampler = LogUniformSampler(num_words=num_words, num_negatives=num_negatives)
    expected = sampler.expected(np.arange(num_words))
    assert expected.sum() == pytest.approx(num_negatives, rel=1e-12)
    np.testing.assert_allclose(expected, capped_shares(num_words, num_negatives), rtol=1e-9)


@pytest.mark.parametrize("num_negatives", [20, 120])
def test_each_word_is_drawn_as_often_as_expected(num_negatives):
    sampler = LogUniformSampler(num_words=200, num_negatives=num_negatives)
    weights = draw_many(sampler)
    expected = capped_shares(200, num_negatives)
    times = weights * expected
    assert times.sum(axis=1) == pytest.approx(np.full(NUM_DRAWS, num_negatives), abs=1e-4)
    assert np.abs(times - times.round()).max() < 1e-5
    assert np.abs(z_scores(times, expected)).max() < 4.5
    head = sampler.num_certain
    assert 0 < head < num_negatives
    np.testing.assert_allclose(times[:, :head], 1.0, rtol=1e-12)
    assert (times[:, head:].std(axis=0) > 0).all()


def test_the_sum_over_all_words_is_estimated_without_bias():
    sampler = LogUniformSampler(num_words=200, num_negatives=20)
    rng = np.random.default_rng(3)
    values = np.exp(rng.normal(size=(5, 200)) * 1.5)
    weights = draw_many(sampler)
    assert np.abs(z_scores(weights @ values.T, values.sum(axis=1))).max() < 4
    # The same test detects a biased estimator: no correction, or shares that are not capped.
    uncorrected = (weights > 0) @ values.T
    assert np.abs(z_scores(uncorrected, values.sum(axis=1))).min() > 20
    capped, plain = capped_shares(200, 20), 20 * log_uniform_shares(200)
    uncapped = (weights * capped / plain) @ values.T
    assert np.abs(z_scores(uncapped, values.sum(axis=1))).min() > 6


def test_words_come_once_and_in_order():
    sampler = LogUniformSampler(num_words=300, num_negatives=200)
    rng = np.random.default_rng(0)
    numbers = set()
    for _ in range(50):
        drawn = sampler.draw(rng)
        assert drawn.words.dtype == torch.int64
        assert drawn.log_expected.dtype == torch.float32
        assert len(drawn.words) == len(drawn.log_expected)
        assert (drawn.words.diff() > 0).all()
        assert drawn.words[0] >= 0
        assert drawn.words[-1] < 300
        numbers.add(len(drawn.words))
    assert max(numbers) <= 200
    assert min(numbers) < 200  # some word was drawn twice, and stands there once


@pytest.mark.parametrize("num_negatives", [7, 8, 1000])
def test_as_many_draws_as_words_are_all_words(num_negatives):
    drawn = LogUniformSampler(num_words=7, num_negatives=num_negatives).draw(
        np.random.default_rng(0)
    )
    assert drawn.words.tolist() == list(range(7))
    assert drawn.log_expected.tolist() == [0.0] * 7


class OneNumber:
    """A generator that always draws the same."""

    def __init__(self, number):
        self.number = number

    def random(self, size):
        return np.full(size, self.number)


@pytest.mark.parametrize(
    ("num_words", "num_negatives"), [(200, 2), (1_000_000, 7), (1_000_000, 100)]
)
def test_the_first_and_the_last_word_can_be_drawn_and_none_beyond(num_words, num_negatives):
    """In the first two cases the last place is rounded to one behind the last word."""
    sampler = LogUniformSampler(num_words=num_words, num_negatives=num_negatives)
    assert sampler.draw(OneNumber(0.0)).words[0] == 0
    assert sampler.draw(OneNumber(np.nextafter(1.0, 0.0))).words[-1] == num_words - 1


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="cannot draw 0 of 5 words"):
        LogUniformSampler(num_words=5, num_negatives=0)
