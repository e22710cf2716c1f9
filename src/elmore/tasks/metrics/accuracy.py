"""Accuracy: the score of SST, SNLI and single tags."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from elmore.tasks.metrics.ratios import divide


@dataclass(frozen=True, kw_only=True, slots=True)
class Accuracy:
    """Counts that can be added over batches or files."""

    num_correct: int = 0
    num_labels: int = 0

    def __add__(self, other: "Accuracy") -> "Accuracy":
        return Accuracy(
            num_correct=self.num_correct + other.num_correct,
            num_labels=self.num_labels + other.num_labels,
        )

    @property
    def share(self) -> float:
        """From 0 to 1; 0 if there are no labels."""
        return divide(self.num_correct, self.num_labels)


def find_largest_share(labels: Iterable[Hashable]) -> float:
    """Return the share of the most frequent label, which is the accuracy of always predicting it.

    >>> find_largest_share(["yes", "no", "yes", "yes"])
    0.75
    """
    counts = Counter(labels)
    return divide(max(counts.values(), default=0), counts.total())


def score_labels(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> Accuracy:
    """Count the predicted labels that equal the gold labels."""
    if len(gold) != len(predicted):
        raise ValueError(f"expected {len(gold)} predicted labels, got {len(predicted)}")
    num_correct = sum(right == guess for right, guess in zip(gold, predicted, strict=True))
    return Accuracy(num_correct=num_correct, num_labels=len(gold))
