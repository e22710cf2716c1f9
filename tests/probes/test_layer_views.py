import numpy as np
import pytest

from elmore.embed.embedder import Embedder
from elmore.probes.layer_views import (
    TaggedParts,
    find_goals,
    score_views,
    store_arrays,
    view_layers,
)
from elmore.probes.linear_probe import ProbeSettings
from elmore.probes.tagged_data import TaggedSentence
from elmore.text.word_vectors import WordVectors
from tests import tiny

SETTINGS = ProbeSettings(tokens_per_batch=16, learning_rate=0.1)


class NeighborVectors:
    """A stand-in: layer 0 knows a token's first letter, layer 1 that of the token before it."""

    num_layers = 2

    def stream(self, sentences, *, layers):
        assert layers == "all"
        for tokens in sentences:
            letters = np.array([ord(token[0]) - ord("a") for token in tokens])
            before = np.concatenate([[0], letters[:-1]])
            yield np.eye(4, dtype=np.float32)[np.stack([letters, before])]


def make_sentences(num_sentences, *, seed):
    """Tokens of random letters, each tagged by the letter before it."""
    generator = np.random.default_rng(seed)
    for _ in range(num_sentences):
        letters = generator.integers(4, size=generator.integers(1, 8))
        tokens = ["abcd"[letter] + str(generator.integers(9)) for letter in letters]
        tags = ["ABCD"[letter] for letter in [0, *letters[:-1]]]
        yield TaggedSentence(tokens=tokens, tags=tags)


PARTS = TaggedParts(
    train=list(make_sentences(80, seed=0)),
    dev=list(make_sentences(20, seed=1)),
    test=[
        *make_sentences(20, seed=2),
        TaggedSentence(tokens=["bx", "c1", "dx"], tags=["A", "B", "new"]),
    ],
)


def count_right(score, part):
    """Return numbers of tokens rather than shares."""
    accuracy = getattr(score, part)
    return round(accuracy.overall * accuracy.num_tokens)


def test_an_informative_layer_scores_higher_than_an_uninformative_one():
    letters = WordVectors(
        words=tuple(f"{letter}{digit}" for letter in "abcd" for digit in range(9)),
        vectors=np.repeat(np.eye(4, dtype=np.float32), 9, axis=0),
    )
    scores = score_views(PARTS, NeighborVectors(), words=letters, settings=SETTINGS)
    named = {score.name: score for score in scores}
    assert list(named) == [
        "most frequent tag", "word vectors", "layer 0", "layer 1", "average", "learned mix",
    ]  # fmt: skip
    num_test = sum(len(sentence.tokens) for sentence in PARTS.test)
    for name in ("layer 1", "learned mix"):
        assert named[name].dev.overall == 1
        assert count_right(named[name], "test") == num_test - 1  # 'new' cannot be known
        assert named[name].test.unseen == 0.5
    for name in ("most frequent tag", "word vectors", "layer 0"):
        assert named[name].dev.overall < 0.7
    assert named["learned mix"].shares[1] > 0.6
    assert all(score.shares is None for score in scores if score.name != "learned mix")


def test_the_baseline_is_what_counting_gives():
    tokens = {"a": ["X", "X", "Y"], "b": ["Y"]}
    train = [
        TaggedSentence(tokens=[token] * len(tags), tags=tags) for token, tags in tokens.items()
    ]
    train.append(TaggedSentence(tokens=["c"] * 3, tags=["Z"] * 3))
    parts = TaggedParts(
        train=train,
        dev=[TaggedSentence(tokens=["a", "b"], tags=["X", "Y"])],
        test=[TaggedSentence(tokens=["a", "b", "c", "d", "d"], tags=["Y", "Y", "Z", "Z", "X"])],
    )
    baseline = score_views(parts, NeighborVectors(), settings=SETTINGS)[0]
    # X 2, Y 2, Z 3 in training: 'd' is taken for a Z.
    assert (baseline.dev.overall, baseline.dev.unseen, baseline.dev.num_unseen) == (1, None, 0)
    assert (baseline.test.overall, baseline.test.unseen) == (3 / 5, 1 / 2)
    assert (baseline.test.num_tokens, baseline.test.num_unseen) == (5, 2)


def test_views_are_the_vectors_of_an_embedder_and_their_mean():
    embedder = Embedder(tiny.model())
    sentences = PARTS.train[:7]
    views = view_layers(embedder, sentences)
    assert list(views) == ["layer 0", "layer 1", "layer 2", "average"]
    layers = np.concatenate(
        embedder.embed([each.tokens for each in sentences], layers="all"), axis=1
    )
    for number in range(3):
        np.testing.assert_array_equal(views[f"layer {number}"], layers[number])
    np.testing.assert_allclose(views["average"], layers.mean(axis=0), rtol=1e-6)


def test_stored_arrays_are_joined_for_any_dtype_and_layout():
    first = np.arange(12, dtype=np.float64).reshape(3, 4)
    second = np.asfortranarray(-first[:2].astype(np.float16))
    stored = store_arrays([(first, first * 2), (second, second * 2)], num_arrays=2)
    wanted = np.concatenate([first, second]).astype(np.float32)
    assert [array.dtype for array in stored] == [np.float32] * 2
    np.testing.assert_array_equal(stored[0], wanted)
    np.testing.assert_array_equal(stored[1], wanted * 2)


def test_unseen_is_what_training_spells_otherwise():
    parts = TaggedParts(
        train=[TaggedSentence(tokens=["The", "cat"], tags=["D", "N"])],
        dev=[TaggedSentence(tokens=["the", "cat"], tags=["D", "N"])],
        test=[TaggedSentence(tokens=["cats"], tags=["V"])],
    )
    train, dev, test = find_goals(parts)
    assert train.is_unseen.tolist() == [False, False]
    assert dev.is_unseen.tolist() == [True, False]
    assert (train.tags, dev.labels.tolist(), test.labels.tolist()) == (["D", "N"], [0, 1], [-1])


@pytest.mark.slow
def test_one_seed_gives_one_score():
    first, second = (score_views(PARTS, NeighborVectors(), settings=SETTINGS) for _ in range(2))
    assert first == second


def test_progress_reports_tokens_and_epochs():
    said = []
    score_views(PARTS, NeighborVectors(), settings=SETTINGS, on_progress=said.append)
    num_train = sum(len(sentence.tokens) for sentence in PARTS.train)
    assert f"embedding, {num_train:,} tokens" in said
    assert "probing learned mix, epoch 1" in said


@pytest.mark.parametrize("name", ["train", "dev", "test"])
def test_arrays_outlive_what_made_them(name):
    views = view_layers(NeighborVectors(), getattr(PARTS, name))
    layers = list(NeighborVectors().stream([s.tokens for s in getattr(PARTS, name)], layers="all"))
    np.testing.assert_array_equal(views["layer 1"], np.concatenate(layers, axis=1)[1])
