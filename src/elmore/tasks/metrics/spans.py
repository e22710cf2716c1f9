"""Precision, recall and F1 of spans, computed as by conlleval (CoNLL-2000 to 2003)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from elmore.tasks.metrics.ratios import divide, f1
from elmore.tasks.metrics.tag_schemes import Span, read_spans


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanCounts:
    """The numbers of gold spans, predicted spans and exact matches."""

    num_gold: int = 0
    num_predicted: int = 0
    num_correct: int = 0

    def __add__(self, other: "SpanCounts") -> "SpanCounts":
        return SpanCounts(
            num_gold=self.num_gold + other.num_gold,
            num_predicted=self.num_predicted + other.num_predicted,
            num_correct=self.num_correct + other.num_correct,
        )

    @property
    def precision(self) -> float:
        """From 0 to 1; 0 if nothing was predicted."""
        return divide(self.num_correct, self.num_predicted)

    @property
    def recall(self) -> float:
        """From 0 to 1; 0 if there was nothing to find."""
        return divide(self.num_correct, self.num_gold)

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return f1(self.precision, self.recall)

    def to_percent(self) -> dict[str, float]:
        """Return F1, precision and recall, from 0 to 100."""
        return {
            "f1": 100 * self.f1,
            "precision": 100 * self.precision,
            "recall": 100 * self.recall,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanScore:
    """Counts by type, of one sentence or summed over sentences."""

    by_type: Mapping[str, SpanCounts] = field(default_factory=dict)

    def __add__(self, other: "SpanScore") -> "SpanScore":
        zero = SpanCounts()
        types = sorted(self.by_type.keys() | other.by_type.keys())
        return SpanScore(
            by_type={
                name: self.by_type.get(name, zero) + other.by_type.get(name, zero) for name in types
            }
        )

    @property
    def total(self) -> SpanCounts:
        """All types together: its F1 is the micro average that conlleval prints first."""
        return sum(self.by_type.values(), start=SpanCounts())


def score_tags(gold: Sequence[str], predicted: Sequence[str]) -> SpanScore:
    """Score a sentence's predicted tags; the two sides may follow different schemes or none."""
    if len(gold) != len(predicted):
        raise ValueError(f"expected {len(gold)} predicted tags, got {len(predicted)}")
    return score_spans(read_spans(gold, where="gold"), read_spans(predicted, where="predicted"))


def score_spans(gold: Iterable[Span], predicted: Iterable[Span]) -> SpanScore:
    """Score a sentence's spans; a span is correct if its start, end and type are."""
    gold, predicted = set(gold), set(predicted)
    num_gold, num_predicted, num_correct = (
        Counter(span.type for span in spans) for spans in (gold, predicted, gold & predicted)
    )
    return SpanScore(
        by_type={
            name: SpanCounts(
                num_gold=num_gold[name],
                num_predicted=num_predicted[name],
                num_correct=num_correct[name],
            )
            for name in sorted(num_gold.keys() | num_predicted.keys())
        }
    )
