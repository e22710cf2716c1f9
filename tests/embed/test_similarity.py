"""Sentence vectors for similarity, compared with the formulas written out in numpy."""

import copy
import pickle

import numpy as np
import pytest
import torch

import elmore
from elmore.embed.embedder import Embedder
from elmore.embed.similarity import count_shares
from elmore.errors import ConfigError, DataError, ModelError
from elmore.weights.similarity_file import has_similarity
from tests import tiny
from tests.lm.slow_language_model import make_language_model

NUM_SENTENCES = 80
WORDS = ["the", "a", "cat", "dog", "sat", "ran", "far", "on", "mats", "Beds", "fab", "egg"]


def make_sentences(num_sentences: int = NUM_SENTENCES) -> list[list[str]]:
    """Random sentences in which the first words are frequent."""
    numbers = np.random.default_rng(3)
    chances = 1 / np.arange(1, len(WORDS) + 1)
    return [
        numbers.choice(WORDS, size=numbers.integers(1, 9), p=chances / chances.sum()).tolist()
        for _ in range(num_sentences)
    ]


@pytest.fixture
def embedder() -> Embedder:
    return Embedder(tiny.model())


def pool_slowly(
    embedder: Embedder, sentences: list[list[str]], *, text: list[list[str]], smoothing: float
) -> np.ndarray:
    """The oracle for layer 0: a weighted mean, centered, along the principal directions."""
    tokens = [token.lower() for sentence in text for token in sentence]

    def average(sentence: list[str]) -> np.ndarray:
        vectors = embedder.embed([sentence], layers=0)[0].astype(np.float64)
        shares = [tokens.count(token.lower()) / len(tokens) for token in sentence]
        weights = [smoothing / (smoothing + share) for share in shares]
        return sum(w * v for w, v in zip(weights, vectors, strict=True)) / sum(weights)

    means = np.array([average(sentence) for sentence in text])
    center = means.mean(axis=0)
    _, sizes, directions = np.linalg.svd(means - center, full_matrices=False)
    half = len(center) // 2  # layer 0 has its numbers twice
    variances = sizes[:half] ** 2 / len(means)
    scales = np.sqrt(variances + 0.01 * variances.mean())
    return (np.array([average(s) for s in sentences]) - center) @ directions[:half].T / scales


def find_cosines(vectors: np.ndarray) -> np.ndarray:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T


def test_vectors_are_those_of_the_formula(embedder):
    text = make_sentences()
    embedder.fit_similarity(text, smoothing=0.1)
    found = embedder.sentence_vectors(text[:20], pool="similarity")
    expected = pool_slowly(embedder, text[:20], text=text, smoothing=0.1)
    assert found.shape == (20, embedder.vector_dim // 2)
    assert found.dtype == np.float32
    # Directions have no sign and no fixed order, lengths and cosines do not depend on either.
    lengths = np.linalg.norm(expected, axis=1)
    assert np.allclose(np.linalg.norm(found, axis=1), lengths, rtol=1e-3)
    assert np.allclose(find_cosines(found), find_cosines(expected), atol=1e-3)


def test_all_directions_of_the_text_have_about_the_same_variance(embedder):
    text = make_sentences(2000)
    embedder.fit_similarity(text, layers=[0, 2])
    found = embedder.sentence_vectors(text, pool="similarity")
    assert found.shape[1] == embedder.vector_dim + embedder.vector_dim // 2
    assert np.allclose(found.mean(axis=0), 0, atol=1e-2)
    correlations = np.corrcoef(found.T)
    assert np.allclose(correlations, np.eye(len(correlations)), atol=0.02)
    assert (found.var(axis=0) <= 1.01).all()


def test_words_that_are_too_rare_to_matter_are_not_stored():
    text = [["The", "the", "cat"], ["the"] * 97]
    assert count_shares(text, smoothing=0.1) == {"the": 0.99, "cat": 0.01}
    assert count_shares(text, smoothing=0.3) == {"the": 0.99}


def test_input_and_output_are_as_for_other_pools(embedder):
    text = make_sentences()
    embedder.fit_similarity(text)
    several = embedder.sentence_vectors([text[0], [], text[1]], pool="similarity")
    assert not several[1].any()
    single = embedder.sentence_vectors(" ".join(text[0]), pool="similarity", tokenized=True)
    assert np.array_equal(single, several[0])
    assert embedder.sentence_vectors([], pool="similarity").shape == (0, several.shape[1])
    tensor = embedder.sentence_vectors([text[0]], pool="similarity", output="torch")
    assert np.array_equal(tensor.numpy()[0], several[0])


def send(embedder: Embedder) -> Embedder:
    return pickle.loads(pickle.dumps(embedder))


def test_it_is_saved_with_the_model_and_pickled(embedder, tmp_path):
    text = make_sentences()
    embedder.fit_similarity(text)
    expected = embedder.sentence_vectors(text, pool="similarity")
    embedder.save(tmp_path / "model")
    loaded = elmore.load(tmp_path / "model")
    assert np.array_equal(loaded.sentence_vectors(text, pool="similarity"), expected)
    assert len(pickle.dumps(loaded)) < 1000, "what is stored with the model is read again"
    for copied in (send(embedder), send(loaded), copy.deepcopy(embedder)):
        assert np.array_equal(copied.sentence_vectors(text, pool="similarity"), expected)
    loaded.save(tmp_path / "half", store="f16")
    rounded = elmore.load(tmp_path / "half").sentence_vectors(text, pool="similarity")
    assert np.allclose(rounded, expected, atol=0.02)
    loaded.save(tmp_path / "model")  # its own folder
    again = elmore.load(tmp_path / "model")
    assert np.array_equal(again.sentence_vectors(text, pool="similarity"), expected)
    Embedder(tiny.model(seed=9)).save(tmp_path / "model")  # another model in the same folder
    with pytest.raises(ModelError, match="call fit_similarity"):
        elmore.load(tmp_path / "model").sentence_vectors("a", pool="similarity")


def test_mistakes_are_named(embedder):
    with pytest.raises(ModelError, match=r"nothing stored for pool='similarity'; call fit_"):
        embedder.sentence_vectors("a cat", pool="similarity")
    with pytest.raises(ConfigError, match="choose one of: mean, max, last, similarity"):
        embedder.sentence_vectors("a cat", pool="cls")
    with pytest.raises(DataError, match=r"got 2 sentences .* give at least 20"):
        embedder.fit_similarity([["a"], [], ["b"]])
    with pytest.raises(DataError, match=r"got 0 sentences"):
        embedder.fit_similarity([])
    for smoothing in (0, -1, 2, "much"):
        with pytest.raises(ConfigError, match="smoothing"):
            embedder.fit_similarity(make_sentences(), smoothing=smoothing)
    with pytest.raises(ConfigError, match="layers is 7"):
        embedder.fit_similarity(make_sentences(), layers=7)
    embedder.fit_similarity(make_sentences())
    with pytest.raises(ConfigError, match="layers of its own"):
        embedder.sentence_vectors("a cat", pool="similarity", layers=1)


@pytest.fixture
def language_model(tmp_path):
    """A model with an LM head and with what similarity needs."""
    make_language_model().save(tmp_path / "lm")
    embedder = elmore.load(tmp_path / "lm")
    embedder.fit_similarity(make_sentences())
    embedder.save(tmp_path / "lm")
    return elmore.LanguageModel.load(tmp_path / "lm")


def test_a_language_model_is_saved_with_it(language_model, tmp_path):
    text = make_sentences()
    expected = elmore.load(tmp_path / "lm").sentence_vectors(text, pool="similarity")
    language_model.save(tmp_path / "copy")
    language_model.save(tmp_path / "lm")  # its own folder
    for name in ("copy", "lm"):
        found = elmore.load(tmp_path / name).sentence_vectors(text, pool="similarity")
        assert np.array_equal(found, expected)
    language_model.save(tmp_path / "half", store="f16")
    rounded = elmore.load(tmp_path / "half").sentence_vectors(text, pool="similarity")
    assert np.allclose(rounded, expected, atol=0.05)


def test_a_language_model_with_other_weights_is_saved_without_it(language_model, tmp_path):
    with torch.no_grad():
        language_model.elmo.bilm.initial_cell += 1
    language_model.save(tmp_path / "lm")
    assert not has_similarity(tmp_path / "lm")
    assert list(elmore.LanguageModel.load(tmp_path / "lm").score(["the cat"]))


def test_a_language_model_is_pushed_with_it(language_model, tmp_path, monkeypatch):
    asked = {}

    def upload(save, repo_id, **options):
        save(tmp_path / "uploaded")
        asked.update(options)
        return repo_id

    monkeypatch.setattr("elmore.lm.language_model.upload", upload)
    language_model.push_to_hub("me/lm")
    assert has_similarity(tmp_path / "uploaded")
    # The hub keeps what is uploaded, and deletes the other files of these names.
    assert asked["delete_patterns"] == ["similarity.safetensors", "similarity.json"]
