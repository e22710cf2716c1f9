import numpy as np
import pytest

from elmore.embed.embedder import Embedder
from elmore.errors import DataError
from elmore.explore import neighbors
from elmore.explore.neighbors import collect_contexts, nearest_pairs, nearest_to
from tests import tiny

SENTENCES = [["a", "bank"], ["x"], ["Bank", "of", "bank"], ["the", "bank", "of"], ["a", "bank"]]


@pytest.fixture(scope="module")
def embedder():
    return Embedder(tiny.model(scale=0.4), layers="top")


def test_contexts_are_every_use_in_order(embedder):
    contexts, vectors = collect_contexts(embedder, "bank", SENTENCES)
    assert [(c.sentence, c.position) for c in contexts] == [(0, 1), (2, 0), (2, 2), (3, 1), (4, 1)]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-5)
    wanted = embedder.embed(SENTENCES)[3][1]
    np.testing.assert_allclose(vectors[3], wanted / np.linalg.norm(wanted), rtol=1e-5)


def test_neighbors_are_those_of_plain_cosines(embedder):
    """Checked against cosines of every pair, computed one by one."""
    contexts, vectors = collect_contexts(embedder, "bank", SENTENCES)
    query = vectors[3].astype(np.float64)
    cosines = sorted((float(v.astype(np.float64) @ query) for v in vectors), reverse=True)
    found = nearest_to(embedder, "bank", SENTENCES, query=["the", "bank", "of"], top=3)
    np.testing.assert_allclose([n.similarity for n in found], cosines[:3], atol=1e-6)
    assert found[0].context == contexts[3]


@pytest.mark.parametrize("rows_at_once", [1, 2, 1000])
def test_pairs_are_each_use_with_its_nearest(embedder, monkeypatch, rows_at_once):
    monkeypatch.setattr(neighbors, "ROWS_AT_ONCE", rows_at_once)
    contexts, vectors = collect_contexts(embedder, "bank", SENTENCES)
    wanted = set()
    for i in range(len(contexts)):
        others = [j for j in range(len(contexts)) if j != i]
        j = max(others, key=lambda j: vectors[i] @ vectors[j])
        wanted.add((min(i, j), max(i, j)))
    found = nearest_pairs(embedder, "bank", SENTENCES)
    places = {(contexts.index(n.context), contexts.index(n.other)) for n in found}
    assert places == wanted
    similarities = [n.similarity for n in found]
    assert similarities == sorted(similarities, reverse=True)


def test_carried_state_is_carried_over_sentences_without_the_word():
    embedder = Embedder(tiny.model(scale=0.4), layers="top", state="document")
    contexts, vectors = collect_contexts(embedder, "bank", SENTENCES)
    whole = embedder.embed(SENTENCES)
    for context, vector in zip(contexts, vectors, strict=True):
        wanted = whole[context.sentence][context.position]
        np.testing.assert_allclose(vector, wanted / np.linalg.norm(wanted), rtol=1e-4, atol=1e-6)


def test_only_the_first_uses_of_a_frequent_word_count(embedder, monkeypatch):
    monkeypatch.setattr(neighbors, "MAX_CONTEXTS", 2)
    contexts, _ = collect_contexts(embedder, "bank", SENTENCES)
    assert [(c.sentence, c.position) for c in contexts] == [(0, 1), (2, 0)]


def test_one_use_has_no_pair(embedder):
    assert nearest_pairs(embedder, "x", SENTENCES) == []
    assert nearest_pairs(embedder, "y", SENTENCES) == []


def test_a_query_without_the_word_is_refused(embedder):
    with pytest.raises(DataError, match="does not contain the word 'bank'"):
        nearest_to(embedder, "bank", SENTENCES, query=["x"])
