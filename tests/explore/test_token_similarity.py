import numpy as np

from elmore.explore.token_similarity import token_similarity
from tests.explore import indexes


def test_cosines_and_products_are_those_of_the_vectors():
    embedder = indexes.make_embedder()
    found = token_similarity(embedder, "A bank is a bank.")
    assert found.tokens == ["A", "bank", "is", "a", "bank", "."]
    vectors = embedder.embed([found.tokens], layers="all")[0].astype(np.float64)
    weights = np.array([0.2, 0.3, 0.5])
    mixed = np.tensordot(weights, vectors, axes=1)
    for i in range(6):
        for j in range(6):
            for layer in range(3):
                one, two = vectors[layer, i], vectors[layer, j]
                cosine = one @ two / np.linalg.norm(one) / np.linalg.norm(two)
                np.testing.assert_allclose(found.cosines[layer][i][j], cosine, atol=1e-5)
            products = np.array(found.products)[:, :, i, j]
            np.testing.assert_allclose(weights @ products @ weights, mixed[i] @ mixed[j], rtol=1e-4)


def test_a_sentence_may_have_no_tokens():
    found = token_similarity(indexes.make_embedder(), "")
    assert (found.tokens, found.cosines) == ([], [[], [], []])
