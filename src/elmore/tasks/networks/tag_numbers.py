"""Convert tags to numbers, as input of a loss."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

# Stands for padding and for tags that do not occur in training; they have no loss.
NO_LABEL = -100


def number_tags(sentences: Sequence[Sequence[str]], *, labels: Sequence[str]) -> Tensor:
    """Return the numbers of the tags of B sentences: (B, T) int64, padded with NO_LABEL.

    >>> number_tags([["O", "B-A"], ["B-NEW"]], labels=["O", "B-A"]).tolist()
    [[0, 1], [-100, -100]]
    """
    numbers = {label: number for number, label in enumerate(labels)}
    rows = [torch.tensor([numbers.get(tag, NO_LABEL) for tag in tags]) for tags in sentences]
    return pad_sequence(rows, batch_first=True, padding_value=NO_LABEL)
