from itertools import pairwise

import numpy as np
import pytest

from elmore.explore.use_groups import cluster, find_groups, mean_silhouette
from elmore.explore.uses import Use, to_unit_length


def make_use(number, tokens, position, word=None):
    tokens = tokens.split()
    return Use(
        number=number,
        word=word or tokens[position],
        sentence=number,
        position=position,
        tokens=tokens,
        source="text",
        document=0,
        line=1,
        tag=None,
    )


def make_clusters(sizes, dim=10, noise=0.15, seed=0):
    generator = np.random.default_rng(seed)
    centers = np.eye(dim)[: len(sizes)] * 2
    rows = [
        center + noise * generator.normal(size=(size, dim))
        for center, size in zip(centers, sizes, strict=True)
    ]
    return np.concatenate(rows).astype(np.float32)


def group(vectors, uses=None, num_groups=None, center_by_spelling=False):
    uses = uses or [make_use(n, "the bank .", 1) for n in range(len(vectors))]
    return find_groups(vectors, uses, num_groups=num_groups, center_by_spelling=center_by_spelling)


@pytest.mark.parametrize("seed", range(3))
def test_groups_are_as_tight_as_those_of_scikit_learn(seed):
    sklearn_cluster = pytest.importorskip("sklearn.cluster")
    units = to_unit_length(np.random.default_rng(seed).normal(size=(60, 6)).astype(np.float32))
    for number in (2, 3, 5):
        labels = cluster(units, number)
        theirs = sklearn_cluster.KMeans(number, n_init=10, random_state=0).fit(units).labels_

        def tightness(labels, number=number):
            sums = [units[labels == n].sum(axis=0) for n in range(number)]
            return sum(np.linalg.norm(total) for total in sums)

        assert tightness(labels) > 0.985 * tightness(theirs)


def test_silhouettes_are_those_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    units = to_unit_length(make_clusters([9, 5, 1], noise=0.6))
    labels = np.array([0] * 9 + [1] * 5 + [2])
    wanted = metrics.silhouette_score(units, labels, metric="cosine")
    assert mean_silhouette(units, labels) == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("sizes", [[8, 5], [4, 9, 6], [5, 5, 5, 8]])
def test_the_number_of_groups_is_found(sizes):
    found = group(make_clusters(sizes))
    assert [part.num_uses for part in found.groups] == sorted(sizes, reverse=True)
    assert found.silhouette > 0.5
    starts = np.cumsum([0, *sizes])
    for start, end in pairwise(starts):
        assert len(set(found.labels[start:end])) == 1
    assert group(make_clusters(sizes)) == found


def test_the_number_of_groups_can_be_given():
    assert len(group(make_clusters([8, 5]), num_groups=3).groups) == 3
    found = group(make_clusters([8, 5]), num_groups=1)
    assert (found.labels, found.silhouette) == ([0] * 13, None)


def test_few_or_equal_uses_are_one_group():
    for vectors in (np.ones((1, 3)), np.ones((2, 3)), np.ones((9, 3))):
        found = group(vectors.astype(np.float32))
        assert [part.num_uses for part in found.groups] == [len(vectors)]
    assert group(np.empty((0, 3), np.float32)).groups == []


def test_distinctive_words_are_those_of_the_group_without_stop_words():
    vectors = make_clusters([6, 4])
    uses = [make_use(n, f"He sat on the muddy Bank of the river 's {n} .", 5) for n in range(6)]
    uses += [make_use(n, "the bank raised its rates and the muddy loans", 1) for n in range(6, 10)]
    first, second = group(vectors, uses).groups
    assert [entry.word for entry in first.words] == ["river", "sat"]
    assert (first.words[0].num_inside, first.words[0].num_outside) == (6, 0)
    assert {entry.word for entry in second.words} == {"raised", "rates", "loans"}
    assert first.typical in range(6)
    assert second.typical in range(6, 10)


def test_centering_by_spelling_groups_by_what_is_left():
    """Spelling is the largest difference, meaning a smaller one."""
    generator = np.random.default_rng(0)
    meanings, spellings = np.array([0, 1] * 10), np.array([0] * 10 + [1] * 10)
    axes = np.eye(8)
    vectors = 4 * axes[spellings] + axes[2 + meanings] + 0.05 * generator.normal(size=(20, 8))
    words = ["bank" if spelling else "Bank" for spelling in spellings]
    uses = [make_use(n, "the bank", 1, word=word) for n, word in enumerate(words)]
    vectors = vectors.astype(np.float32)
    plain = group(vectors, uses, num_groups=2).labels
    assert plain in (spellings.tolist(), (1 - spellings).tolist())
    centered = group(vectors, uses, num_groups=2, center_by_spelling=True).labels
    assert centered in (meanings.tolist(), (1 - meanings).tolist())
