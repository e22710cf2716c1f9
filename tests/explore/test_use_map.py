import sys

import numpy as np
import pytest

from elmore.errors import DataError, MissingExtraError
from elmore.explore import use_map
from elmore.explore.use_map import MapMethod, draw_map, prepare_vectors


def make_vectors(n=40, dim=12, seed=0):
    generator = np.random.default_rng(seed)
    return (generator.normal(size=(n, dim)) + 1).astype(np.float32)


def draw(vectors, spellings=None, method=MapMethod.PCA, center_by_spelling=False):
    return draw_map(
        vectors,
        spellings or ["a"] * len(vectors),
        method=method,
        center_by_spelling=center_by_spelling,
    )


@pytest.mark.parametrize("num_uses", [40, 9])  # more than 12 numbers per vector, and fewer
def test_points_are_the_principal_components_of_unit_vectors(num_uses):
    decomposition = pytest.importorskip("sklearn.decomposition")
    vectors = make_vectors(n=num_uses)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    wanted = decomposition.PCA(n_components=2).fit(units)
    found = draw(vectors)
    points = wanted.transform(units)
    signs = np.sign((points * found.points).sum(axis=0))
    np.testing.assert_allclose(found.points, points * signs, atol=1e-5)
    np.testing.assert_allclose(found.explained, wanted.explained_variance_ratio_, atol=1e-5)


def test_equal_vectors_are_one_point():
    vectors = np.repeat(make_vectors(n=2), 5, axis=0)
    points = np.array(draw(vectors).points)
    assert np.ptp(points[:5], axis=0) == pytest.approx([0, 0], abs=1e-6)
    assert abs(points[0, 0] - points[9, 0]) > 0.1
    assert draw(vectors[:5]).points == [(0.0, 0.0)] * 5
    assert draw(vectors[:1]).points == [(0.0, 0.0)]
    assert draw(vectors[:0]).points == []


def test_centering_by_spelling_removes_what_a_spelling_has_in_common():
    vectors = make_vectors()
    spellings = ["bank", "Bank"] * 20
    vectors[1::2] += 3 * make_vectors(n=1, seed=1)
    centered = prepare_vectors(vectors, spellings, center_by_spelling=True)
    for start in (0, 1):
        assert centered[start::2].mean(axis=0) == pytest.approx(np.zeros(12), abs=1e-6)
    apart = np.array(draw(vectors, spellings).points)
    together = np.array(draw(vectors, spellings, center_by_spelling=True).points)
    gap = abs(apart[::2, 0].mean() - apart[1::2, 0].mean())
    assert gap > 10 * abs(together[::2, 0].mean() - together[1::2, 0].mean())


def test_tsne_keeps_clusters_together_and_is_always_the_same():
    pytest.importorskip("openTSNE")
    vectors = np.concatenate([make_vectors(n=12, seed=n) * 0.1 + np.eye(12)[n] for n in range(2)])
    vectors = vectors.astype(np.float32)
    found = draw(vectors, method=MapMethod.TSNE)
    points = np.array(found.points)
    centers = points[:12].mean(axis=0), points[12:].mean(axis=0)
    spread = max(points[:12].std(), points[12:].std())
    assert np.linalg.norm(centers[0] - centers[1]) > spread
    assert found.explained is None
    assert draw(vectors, method=MapMethod.TSNE) == found


def test_tsne_of_equal_vectors_gives_finite_points():
    pytest.importorskip("openTSNE")
    points = draw(np.ones((10, 4), np.float32), method=MapMethod.TSNE).points
    assert np.isfinite(points).all()


def test_tsne_says_what_it_needs(monkeypatch):
    with pytest.raises(DataError, match="t-SNE needs at least 8 uses, there are 3; use method pca"):
        draw(make_vectors(n=3), method=MapMethod.TSNE)
    monkeypatch.setitem(sys.modules, "openTSNE", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'elmore\[explore\]'"):
        draw(make_vectors(), method=MapMethod.TSNE)
    assert use_map.MIN_TSNE_USES == 8
