"""One label out of several: what is right, how wrong a network is, and what it says.

Shapes: B examples, K labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

# The number of a label that training did not have: nothing can be learned from it.
NO_NUMBER = -1

Probabilities = dict[str, float]  # of each label, in the order of the labels


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldLabels:
    """What is right, if it is known."""

    numbers: Tensor | None  # (B,) int64

    def to(self, device: torch.device | str) -> "GoldLabels":
        """Copy to where a network is."""
        return GoldLabels(numbers=None if self.numbers is None else self.numbers.to(device))


def label_loss(logits: Tensor, gold: GoldLabels) -> Tensor:
    """Return the mean cross entropy of (B, K) over the examples whose label has a number."""
    if gold.numbers is None:
        raise ValueError("these examples were prepared without gold labels; a loss needs them")
    total = functional.cross_entropy(logits, gold.numbers, ignore_index=NO_NUMBER, reduction="sum")
    return total / (gold.numbers != NO_NUMBER).sum().clamp(min=1)


def label_probabilities(logits: Tensor, labels: Sequence[str]) -> list[Probabilities]:
    """Return for each row of (B, K) how probable every label is."""
    shares = logits.softmax(dim=-1).tolist()
    return [dict(zip(labels, row, strict=True)) for row in shares]


def best_label(probabilities: Probabilities) -> str:
    """Return the most probable label, of equal ones the first.

    >>> best_label({"good": 0.4, "bad": 0.4, "neither": 0.2})
    'good'
    """
    return max(probabilities, key=probabilities.__getitem__)
