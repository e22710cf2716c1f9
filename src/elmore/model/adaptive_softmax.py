"""Adaptive softmax: rare words have narrower vectors and are in clusters (Grave et al., 2017).

Shapes: N tokens to predict, D the output of one direction, V words by descending count.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmore.model.summed_loss import choose_rows

_NARROWING = 4  # each cluster's vectors are this many times narrower than the previous one's
_CUTOFFS = (4_000, 20_000, 100_000)


def choose_cutoffs(num_words: int) -> tuple[int, ...]:
    """Return where the clusters start: after a head for most of the text, each one larger.

    >>> choose_cutoffs(100_000)
    (4000, 20000)
    """
    return tuple(cutoff for cutoff in _CUTOFFS if 2 * cutoff <= num_words) or (
        max(1, num_words // 2),
    )


class AdaptiveSoftmax(nn.Module):
    """torch's AdaptiveLogSoftmaxWithLoss, with the methods of `WordSoftmax` except sampling."""

    def __init__(self, *, num_words: int, dim: int, cutoffs: Sequence[int] | None = None) -> None:
        super().__init__()
        self.cutoffs = tuple(cutoffs) if cutoffs is not None else choose_cutoffs(num_words)
        narrowest = dim // _NARROWING ** len(self.cutoffs)
        if narrowest < 1:
            raise ValueError(
                f"{len(self.cutoffs)} cutoffs are too many for a softmax of dim {dim}; give fewer, "
                f"or a dim of at least {_NARROWING ** len(self.cutoffs)}"
            )
        self.num_words = num_words
        self.dim = dim
        self.softmax = nn.AdaptiveLogSoftmaxWithLoss(
            dim, num_words, list(self.cutoffs), div_value=_NARROWING, head_bias=True
        )

    @torch.no_grad()
    def initialize(self, seed: int) -> None:
        """Draw initial weights for training; equal seeds give equal weights."""
        generator = torch.Generator().manual_seed(seed)
        for weight in self.softmax.parameters():
            if weight.dim() == 1:
                weight.zero_()
            else:
                weight.normal_(0.0, weight.shape[1] ** -0.5, generator=generator)

    def total_loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Sum -log p of (N,) targets given (N, D) outputs; torch keeps logits for the gradient."""
        return -self._score(outputs, targets).sum()

    @torch.no_grad()
    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return (N,) -log p of targets given (N, D) outputs, some rows at a time; no gradient."""
        step = choose_rows(self.num_words)
        parts = zip(outputs.split(step), targets.split(step), strict=True)
        return torch.cat([-self._score(*part) for part in parts])

    def log_probs(self, outputs: Tensor) -> Tensor:
        """Return (N, V) log p of every word given (N, D) outputs."""
        with torch.autocast(outputs.device.type, enabled=False):
            return self.softmax.log_prob(outputs.to(self.softmax.head.weight.dtype))

    def _score(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return (N,) log p of the targets."""
        with torch.autocast(outputs.device.type, enabled=False):
            return self.softmax(outputs.to(self.softmax.head.weight.dtype), targets).output
