"""Tags by their numbers among the labels, as losses want them."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

# Stands for a tag that training does not have, and for none behind a sentence's end: no loss.
NO_LABEL = -100


def number_tags(sentences: Sequence[Sequence[str]], *, labels: Sequence[str]) -> Tensor:
    """Look the tags of B sentences up; return (B, T) int64, filled up with NO_LABEL.

    >>> number_tags([["O", "B-A"], ["B-NEW"]], labels=["O", "B-A"]).tolist()
    [[0, 1], [-100, -100]]
    """
    numbers = {label: number for number, label in enumerate(labels)}
    rows = [torch.tensor([numbers.get(tag, NO_LABEL) for tag in tags]) for tags in sentences]
    return pad_sequence(rows, batch_first=True, padding_value=NO_LABEL)
