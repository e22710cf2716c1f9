"""MUC, B-cubed and CEAF of coreference clusters, and their mean: the score of CoNLL-2012.

Computed as by the reference scorer 8.01 (Pradhan et al., 2014): clusters are compared as they are.
A mention on only one side is neither added to the other side nor removed.

Shapes: G gold clusters, P predicted clusters.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmore.errors import MissingExtraError
from elmore.tasks.metrics.ratios import divide, f1

# A mention is any value that identifies it in its document, usually (start, end).
Clusters = Iterable[Collection[Hashable]]
_Clusters = list[list[Hashable]]
_Overlaps = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class PartialCounts:
    """The counts behind precision (of predictions) and recall (of gold)."""

    predicted_correct: float = 0.0
    num_predicted: int = 0
    gold_found: float = 0.0
    num_gold: int = 0

    def __add__(self, other: "PartialCounts") -> "PartialCounts":
        return PartialCounts(
            predicted_correct=self.predicted_correct + other.predicted_correct,
            num_predicted=self.num_predicted + other.num_predicted,
            gold_found=self.gold_found + other.gold_found,
            num_gold=self.num_gold + other.num_gold,
        )

    @property
    def precision(self) -> float:
        """From 0 to 1; 0 if nothing was predicted."""
        return divide(self.predicted_correct, self.num_predicted)

    @property
    def recall(self) -> float:
        """From 0 to 1; 0 if there was nothing to find."""
        return divide(self.gold_found, self.num_gold)

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return f1(self.precision, self.recall)


@dataclass(frozen=True, kw_only=True, slots=True)
class CoreferenceScore:
    """Counts of one document, or the sum over documents."""

    mentions: PartialCounts = field(default_factory=PartialCounts)
    muc: PartialCounts = field(default_factory=PartialCounts)
    b_cubed: PartialCounts = field(default_factory=PartialCounts)
    ceaf: PartialCounts = field(default_factory=PartialCounts)  # of entities, by phi 4

    def __add__(self, other: "CoreferenceScore") -> "CoreferenceScore":
        return CoreferenceScore(
            mentions=self.mentions + other.mentions,
            muc=self.muc + other.muc,
            b_cubed=self.b_cubed + other.b_cubed,
            ceaf=self.ceaf + other.ceaf,
        )

    @property
    def mean_f1(self) -> float:
        """The mean F1 of the three, the main score of CoNLL-2012; mentions are not included."""
        return (self.muc.f1 + self.b_cubed.f1 + self.ceaf.f1) / 3


def score_clusters(
    gold: Clusters, predicted: Clusters, *, keep_singletons: bool = True
) -> CoreferenceScore:
    """Compare the clusters of one document.

    Clusters of one mention count, except for MUC, which counts links. If the data has none
    (OntoNotes), predictions should have none either: `keep_singletons=False`.
    """
    min_size = 1 if keep_singletons else 2
    gold_clusters = _drop_small([list(dict.fromkeys(cluster)) for cluster in gold], min_size)
    gold_mentions = {mention for cluster in gold_clusters for mention in cluster}
    predicted_clusters = _drop_small(_drop_repeated(predicted, gold_mentions), min_size)
    overlaps, homes = _count_overlaps(gold_clusters, predicted_clusters)
    gold_sizes = np.array([len(cluster) for cluster in gold_clusters], dtype=np.int64)
    predicted_sizes = np.array([len(cluster) for cluster in predicted_clusters], dtype=np.int64)
    return CoreferenceScore(
        mentions=_count_mentions(gold_mentions, predicted_clusters),
        muc=_count_links(homes, gold_sizes, predicted_sizes),
        b_cubed=_count_b_cubed(overlaps * homes, gold_sizes, predicted_sizes),
        ceaf=_count_aligned(overlaps, gold_sizes, predicted_sizes),
    )


def _drop_small(clusters: _Clusters, min_size: int) -> _Clusters:
    return [cluster for cluster in clusters if len(cluster) >= min_size]


def _drop_repeated(clusters: Clusters, gold_mentions: Container[Hashable]) -> _Clusters:
    """Keep only the first occurrence of a mention; otherwise repetition would raise B-cubed.

    This is only for gold mentions: the reference scorer counts repetitions of all others.
    """
    seen: set[Hashable] = set()
    kept: _Clusters = []
    for cluster in clusters:
        kept.append([])
        for mention in cluster:
            if mention not in seen:
                kept[-1].append(mention)
            if mention in gold_mentions:
                seen.add(mention)
    return kept


def _count_overlaps(gold: _Clusters, predicted: _Clusters) -> tuple[_Overlaps, _Overlaps]:
    """Return two (G, P): common mentions, and those counted in only one gold cluster each.

    They differ if a mention is in two gold clusters, which happens in real data: for MUC and
    B-cubed, it is only in the last of them.
    """
    clusters_of: defaultdict[Hashable, list[int]] = defaultdict(list)
    for row, cluster in enumerate(gold):
        for mention in cluster:
            clusters_of[mention].append(row)
    overlaps = np.zeros((len(gold), len(predicted)), dtype=np.int64)
    homes = np.zeros_like(overlaps)
    for column, cluster in enumerate(predicted):
        for mention in cluster:
            rows = clusters_of.get(mention, [])
            overlaps[rows, column] += 1
            homes[rows[-1:], column] += 1
    return overlaps, homes


def _count_mentions(gold: set[Hashable], predicted: _Clusters) -> PartialCounts:
    mentions = {mention for cluster in predicted for mention in cluster}
    num_common = len(gold & mentions)
    return PartialCounts(
        predicted_correct=num_common,
        num_predicted=len(mentions),
        gold_found=num_common,
        num_gold=len(gold),
    )


def load_assignment() -> Callable[..., Any]:
    """Return the function that aligns clusters; call this before training, to fail early."""
    try:
        from scipy.optimize import linear_sum_assignment  # noqa: PLC0415  an extra, and slow
    except ImportError:
        raise MissingExtraError(needed_for="scoring coreference", extra="tasks") from None
    assign: Callable[..., Any] = linear_sum_assignment
    return assign


def _count_links(
    homes: _Overlaps, gold_sizes: _Overlaps, predicted_sizes: _Overlaps
) -> PartialCounts:
    """MUC: count links; a cluster has one fewer than mentions."""
    num_common = int(np.maximum(homes - 1, 0).sum())
    return PartialCounts(
        predicted_correct=num_common,
        num_predicted=int((predicted_sizes - 1).sum()),
        gold_found=num_common,
        num_gold=int((gold_sizes - 1).sum()),
    )


def _count_b_cubed(
    pairs: _Overlaps, gold_sizes: _Overlaps, predicted_sizes: _Overlaps
) -> PartialCounts:
    """B-cubed: for each mention, the overlap of its two clusters; `pairs` are sums of these."""
    return PartialCounts(
        predicted_correct=float((pairs / predicted_sizes).sum()),
        num_predicted=int(predicted_sizes.sum()),
        gold_found=float((pairs / gold_sizes[:, np.newaxis]).sum()),
        num_gold=int(gold_sizes.sum()),
    )


def _count_aligned(
    overlaps: _Overlaps, gold_sizes: _Overlaps, predicted_sizes: _Overlaps
) -> PartialCounts:
    """CEAF: the similarity (phi 4) of clusters in the best one-to-one alignment."""
    assign = load_assignment()
    similarities = 2 * overlaps / (gold_sizes[:, np.newaxis] + predicted_sizes)
    best = float(similarities[assign(similarities, maximize=True)].sum())
    return PartialCounts(
        predicted_correct=best,
        num_predicted=len(predicted_sizes),
        gold_found=best,
        num_gold=len(gold_sizes),
    )
