import numpy as np
import pytest

from elmore.errors import DataError
from elmore.probes import neighbor_agreement
from elmore.probes.neighbor_agreement import WordUse, collect_word_uses, measure_agreement
from elmore.probes.sense_data import SenseSentence, SenseTarget


def slow_agreement(vectors, labels, sentence_ids):
    """Every pair by itself; neighbors within 1e-6 of the nearest are tied."""
    agreeing, expected = [], []
    for i in range(len(labels)):
        others = [j for j in range(len(labels)) if sentence_ids[j] != sentence_ids[i]]
        cosines = {
            j: vectors[i]
            @ vectors[j]
            / (np.linalg.norm(vectors[i]) or 1)
            / (np.linalg.norm(vectors[j]) or 1)
            for j in others
        }
        tied = [j for j in others if cosines[j] >= max(cosines.values()) - 1e-6]
        agreeing.append(sum(labels[j] == labels[i] for j in tied) / len(tied))
        expected.append(sum(labels[j] == labels[i] for j in others) / len(others))
    return sum(agreeing) / len(agreeing), sum(expected) / len(expected)


@pytest.mark.parametrize("rows_at_once", [1, 7, 1000])
def test_agreement_is_that_of_every_pair_by_itself(monkeypatch, rows_at_once):
    monkeypatch.setattr(neighbor_agreement, "ROWS_AT_ONCE", rows_at_once)
    generator = np.random.default_rng(1)
    vectors = generator.normal(size=(40, 3)).astype(np.float32)
    vectors[10:20] = vectors[0] * np.linspace(0.5, 2, 10, dtype=np.float32)[:, None]  # ties
    vectors[5] = 0
    labels = [str(label) for label in generator.integers(0, 3, size=40)]
    sentence_ids = generator.integers(0, 15, size=40).tolist()
    got = measure_agreement(vectors, labels, sentence_ids)
    wanted = slow_agreement(vectors.astype(np.float64), labels, sentence_ids)
    assert (got.agreeing, got.expected) == pytest.approx(wanted)
    assert got.num_uses == 40


def test_vectors_without_context_agree_as_often_as_chance():
    vector = np.random.default_rng(2).normal(size=50)
    vectors = np.stack([vector * scale for scale in (1, 3, 0.1, 7, 1 / 3)]).astype(np.float32)
    got = measure_agreement(vectors, ["a", "b", "a", "a", "b"], [0, 1, 2, 3, 4])
    assert got.agreeing == pytest.approx(got.expected)
    assert got.expected == pytest.approx((3 * 2 / 4 + 2 * 1 / 4) / 5)


def test_a_neighbor_in_the_same_sentence_does_not_count():
    vectors = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    got = measure_agreement(vectors, ["a", "a", "b"], [0, 0, 1])
    assert (got.agreeing, got.expected) == (0.0, 0.0)


def test_uses_in_one_sentence_cannot_be_compared():
    with pytest.raises(DataError, match="got 2 in 1;"):
        measure_agreement(np.ones((2, 3), dtype=np.float32), ["a", "a"], [4, 4])
    with pytest.raises(ValueError, match="3 vectors, got 1 and 2"):
        measure_agreement(np.ones((3, 3), dtype=np.float32), ["a"], [4, 5])


def make_target(start, lemma, key, *, end=None):
    return SenseTarget(
        start=start,
        end=end or start + 1,
        lemma=lemma,
        part_of_speech="NOUN",
        keys=(key, "other"),
        name="",
    )


def test_uses_are_found_by_form_or_by_lemma():
    sentences = [
        SenseSentence(
            tokens=("Bank", "and", "banks"),
            targets=(make_target(0, "bank", "k0"), make_target(2, "bank", "k1")),
        ),
        SenseSentence(tokens=("bank",), targets=()),
        SenseSentence(
            tokens=("play", "bank", "holiday"),
            targets=(make_target(0, "play", "k2"), make_target(1, "bank_holiday", "k3", end=3)),
        ),
    ]
    first = WordUse(sentence=0, position=0, label="k0")
    play = WordUse(sentence=2, position=0, label="k2")
    assert collect_word_uses(sentences, ["Bank", "play", "bat"]) == {
        "Bank": [first],
        "play": [play],
        "bat": [],
    }
    by_lemma = collect_word_uses(sentences, ["bank"], by_lemma=True)
    assert by_lemma == {"bank": [first, WordUse(sentence=0, position=2, label="k1")]}
