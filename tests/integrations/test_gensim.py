"""gensim reads what elmore writes, and finds the neighbors that numpy finds."""

import numpy as np
import pytest

import elmore
from tests.tiny import TRAINED_MODEL

pytest.importorskip("gensim", reason="gensim is not installed: pip install '.[gensim]'")

from gensim.models import KeyedVectors

from elmore.integrations.gensim import make_keyed_vectors

WORDS = ["bank", "banks", "river", "rivers", "café", "Sinn'", "中国"]


@pytest.fixture(scope="module")
def embedder():
    return elmore.load(TRAINED_MODEL)


def find_nearest(table, word):
    """Return the other words, most similar first."""
    vectors = table.vectors / np.linalg.norm(table.vectors, axis=1, keepdims=True)
    similarities = vectors @ vectors[table.words.index(word)]
    ranked = [table.words[row] for row in np.argsort(-similarities)]
    return [other for other in ranked if other != word]


@pytest.mark.parametrize("suffix", [".txt", ".vec", ".bin"])
def test_gensim_reads_both_formats(embedder, tmp_path, suffix):
    path = tmp_path / f"words{suffix}"
    table = elmore.export_words(path, WORDS, model=embedder)
    keyed = KeyedVectors.load_word2vec_format(str(path), binary=suffix == ".bin")
    assert keyed.index_to_key == WORDS
    assert np.array_equal(keyed.vectors, table.vectors)
    for word in WORDS:
        assert [other for other, _ in keyed.most_similar(word)] == find_nearest(table, word)


def test_keyed_vectors_without_a_file(embedder):
    text = ["The bank of the river rose .", "A bank by a river ."]
    keyed = make_keyed_vectors(text=text, model=embedder, min_count=2)
    table = elmore.word_vectors(text=text, model=embedder, min_count=2)
    assert tuple(keyed.index_to_key) == table.words
    assert np.array_equal(keyed.vectors, table.vectors)
    assert np.array_equal(keyed["bank"], table.vectors[table.words.index("bank")])
