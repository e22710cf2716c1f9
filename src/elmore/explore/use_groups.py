"""Divide uses into groups with similar vectors, by k-means on the unit sphere.

Shapes: n uses, k groups, D numbers per vector.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmore.explore.distinctive_words import DistinctiveWord, find_distinctive_words
from elmore.explore.use_map import prepare_vectors
from elmore.explore.uses import Array, Use, spread_evenly, to_unit_length
from elmore.settings import check_range

MAX_GROUPS = 6
NUM_STARTS = 8
MAX_ROUNDS = 100
SEED = 0
# Silhouettes need the similarities of all pairs, so of many uses a part is measured.
MAX_MEASURED = 1500


@dataclass(frozen=True, kw_only=True, slots=True)
class UseGroup:
    """A group of uses."""

    num_uses: int
    words: list[DistinctiveWord]  # that are more frequent in its sentences than in the others'
    typical: int  # the number of the use nearest to the middle of the group


@dataclass(frozen=True, kw_only=True, slots=True)
class UseGroups:
    """Groups of uses with similar vectors, largest first. They need not be senses."""

    labels: list[int]  # the group of each use, from 0
    groups: list[UseGroup]
    silhouette: float | None  # the mean, from -1 to 1; above 0.2 the groups are fairly distinct
    center_by_spelling: bool


def find_groups(
    vectors: Array, uses: Sequence[Use], *, num_groups: int | None, center_by_spelling: bool
) -> UseGroups:
    """Group the (n, D) vectors of some uses; without `num_groups`, choose it by silhouette."""
    if num_groups is not None:
        check_range("num_groups", num_groups, 1, max(len(uses), 1))
    prepared = to_unit_length(
        prepare_vectors(vectors, [use.word for use in uses], center_by_spelling=center_by_spelling)
    )
    num_different = len(np.unique(prepared.round(4), axis=0))
    most = min(MAX_GROUPS, num_different, len(uses) - 1)
    candidates = [num_groups] if num_groups is not None else list(range(2, most + 1))
    labels, silhouette = np.zeros(len(uses), np.int64), None
    for number in candidates:
        if number == 1:
            continue
        found = cluster(prepared, number)
        score = mean_silhouette(prepared, found)
        if silhouette is None or score > silhouette:
            labels, silhouette = found, score
    labels = _sort_by_size(labels)
    return UseGroups(
        labels=labels.tolist(),
        groups=[
            _describe(number, labels, prepared, uses)
            for number in range(labels.max(initial=-1) + 1)
        ],
        silhouette=silhouette,
        center_by_spelling=center_by_spelling,
    )


def cluster(units: Array, num_groups: int) -> NDArray[np.int64]:
    """Return the group of each of (n, D) vectors of length 1: the best of several k-means."""
    generator = np.random.default_rng(SEED)
    best, highest = np.zeros(len(units), np.int64), -np.inf
    for _ in range(NUM_STARTS):
        centers = _choose_centers(units, num_groups, generator)
        labels = (units @ centers.T).argmax(axis=1)
        for _ in range(MAX_ROUNDS):
            sums = np.zeros_like(centers)
            np.add.at(sums, labels, units)
            # A group that lost all its uses keeps its center.
            is_used = np.bincount(labels, minlength=num_groups) > 0
            centers = np.where(is_used[:, None], to_unit_length(sums), centers)
            moved = (units @ centers.T).argmax(axis=1)
            if np.array_equal(moved, labels):
                break
            labels = moved
        score = float((units @ centers.T)[np.arange(len(units)), labels].sum())
        if score > highest:
            best, highest = labels, score
    return best


def _choose_centers(units: Array, num_groups: int, generator: np.random.Generator) -> Array:
    """Choose uses far from each other, as k-means++ does."""
    chosen = [int(generator.integers(len(units)))]
    while len(chosen) < num_groups:
        distances = np.maximum(1.0 - (units @ units[chosen].T).max(axis=1).astype(np.float64), 0.0)
        distances[chosen] = 0.0
        total = distances.sum()
        shares = distances / total if total > 0 else np.full(len(units), 1 / len(units))
        chosen.append(int(generator.choice(len(units), p=shares)))
    return units[chosen]


def mean_silhouette(units: Array, labels: NDArray[np.int64]) -> float:
    """Return the mean silhouette by cosine distance: (b - a) / max(a, b).

    a is a use's mean distance to its own group, b to the nearest other one. 0 for a use that is
    alone in its group.
    """
    kept = spread_evenly(len(units), MAX_MEASURED)
    units, labels = units[kept], labels[kept]
    names, labels = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        return 0.0
    distances = np.maximum(1.0 - (units @ units.T).astype(np.float64), 0.0)
    np.fill_diagonal(distances, 0.0)
    is_member = labels[:, None] == np.arange(len(names))  # (n, k)
    sizes = is_member.sum(axis=0)
    sums = distances @ is_member
    rows = np.arange(len(units))
    own = sums[rows, labels] / np.maximum(sizes[labels] - 1, 1)
    means = sums / sizes
    means[rows, labels] = np.inf
    other = means.min(axis=1)
    scores = (other - own) / np.maximum(np.maximum(own, other), 1e-12)
    return float(np.where(sizes[labels] > 1, scores, 0.0).mean())


def _sort_by_size(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the largest group the number 0; of equal ones, the one that comes first."""
    names, firsts, sizes = np.unique(labels, return_index=True, return_counts=True)
    order = sorted(range(len(names)), key=lambda n: (-sizes[n], firsts[n]))
    new_names = {int(names[old]): new for new, old in enumerate(order)}
    return np.array([new_names[label] for label in labels.tolist()], np.int64)


def _describe(
    number: int, labels: NDArray[np.int64], units: Array, uses: Sequence[Use]
) -> UseGroup:
    members = np.flatnonzero(labels == number)
    center = units[members].mean(axis=0)
    typical = members[int((units[members] @ center).argmax())]
    return UseGroup(
        num_uses=len(members),
        words=find_distinctive_words(uses, labels == number),
        typical=uses[typical].number,
    )
