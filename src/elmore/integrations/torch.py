"""ELMo in training loops of PyTorch: a collate function for `DataLoader`."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import default_collate

from elmore import Elmo, ElmoreError

# Losses of torch ignore this label.
IGNORED = -100


class SentenceCollate:
    """Makes a batch for `Elmo` from sentences, and tensors from their labels.

    An example is a list of tokens, or a tuple of tokens and labels. Labels per token, a list as
    long as the tokens, are padded with `padding` to (B, T); other labels are collated as by
    `DataLoader` itself. Tokens are spelled here, in the workers of the loader, so that the training
    loop only has to move the batch to its device.
    """

    def __init__(self, elmo: Elmo, *, padding: int = IGNORED) -> None:
        if not isinstance(elmo, Elmo) or elmo.speller is None:
            raise ElmoreError(
                f"got a {type(elmo).__name__} that cannot spell tokens; give an Elmo made from a "
                "model, Elmo(elmore.load())"
            )
        self.speller = elmo.speller  # not the network, which workers do not need
        self.padding = padding

    def __call__(self, examples: Sequence[Any]) -> Any:
        """Return a batch, or a tuple of a batch and one tensor per label."""
        if not isinstance(examples[0], tuple):
            return self.speller.batch(examples)
        tokens, *labels = zip(*examples, strict=True)
        lengths = [len(sentence) for sentence in tokens]
        return self.speller.batch(tokens), *(self._collate(each, lengths) for each in labels)

    def _collate(self, labels: Sequence[Any], lengths: list[int]) -> Any:
        are_lists = all(isinstance(each, list | tuple | Tensor) for each in labels)
        if are_lists and [len(each) for each in labels] == lengths:
            tensors = [torch.as_tensor(each) for each in labels]
            return pad_sequence(tensors, batch_first=True, padding_value=self.padding)
        return default_collate(list(labels))
