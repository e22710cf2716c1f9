"""Networks that choose one label per example: their loss and their predictions.

Shapes: B examples, K labels.
"""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.task import TaskBatch

# Stands for a label that does not occur in training; it has no loss.
NO_NUMBER = -1

Probabilities = dict[str, float]  # by label, in the order of the labels


class LabelChooser(nn.Module):
    """A network that scores labels; subclasses compute the scores of a batch."""

    def __init__(self, *, tokens: TokenInput, labels: Sequence[str]) -> None:
        super().__init__()
        self.tokens = tokens
        self.labels = tuple(labels)

    def score(self, batch: TaskBatch) -> Tensor:
        """Return (B, K), not normalized."""
        raise NotImplementedError

    def loss(self, batch: TaskBatch) -> Tensor:
        """Return the mean cross entropy of the gold labels."""
        return label_loss(self.score(batch), batch.features)

    def predict(self, batch: TaskBatch) -> list[Probabilities]:
        """Return the probabilities of all labels for each example."""
        shares = self.score(batch).softmax(dim=-1).tolist()
        return [dict(zip(self.labels, row, strict=True)) for row in shares]


def label_loss(logits: Tensor, gold: Tensor | None) -> Tensor:
    """Return the mean cross entropy of (B, K) over the examples whose label has a number."""
    if gold is None:
        raise ValueError("these examples were prepared without gold labels; a loss needs them")
    total = functional.cross_entropy(logits, gold, ignore_index=NO_NUMBER, reduction="sum")
    return total / (gold != NO_NUMBER).sum().clamp(min=1)


def best_label(probabilities: Probabilities) -> str:
    """Return the most probable label; of equally probable ones, the first.

    >>> best_label({"good": 0.4, "bad": 0.4, "neither": 0.2})
    'good'
    """
    return max(probabilities, key=probabilities.__getitem__)
