"""Attention over padded sentences, and pooling them into one vector.

Shapes: B sentences or pairs, S and T tokens, D a token.
"""

import torch
from torch import Tensor, nn


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the softmax over the last dimension; 0 where the mask is False, even if it all is."""
    return mask_scores(scores, mask).softmax(dim=-1) * mask


def mask_scores(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the lowest number where the mask is False.

    Not -inf, which would give NaN in a softmax over a row without any token.
    """
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)


def align(
    first: Tensor, second: Tensor, *, first_mask: Tensor, second_mask: Tensor
) -> tuple[Tensor, Tensor]:
    """For each token of (B, S, D) and (B, T, D), return its attention over the other sentence.

    That is the mean of the other sentence's tokens, weighted by similarity: (B, S, D) and
    (B, T, D).
    """
    scores = first @ second.transpose(1, 2)  # (B, S, T)
    of_first = masked_softmax(scores, second_mask[:, None, :]) @ second
    of_second = masked_softmax(scores.transpose(1, 2), first_mask[:, None, :]) @ first
    return of_first, of_second


def attend(x: Tensor, mask: Tensor) -> Tensor:
    """For each token of (B, T, D), return the mean of its sentence, weighted by similarity."""
    return masked_softmax(x @ x.transpose(1, 2), mask[:, None, :]) @ x


def pool_mean(x: Tensor, mask: Tensor) -> Tensor:
    """Return (B, D), the mean over the tokens of (B, T, D)."""
    return (x * mask.unsqueeze(-1)).sum(dim=1) / mask.sum(dim=1, keepdim=True)


def pool_max(x: Tensor, mask: Tensor) -> Tensor:
    """Return (B, D), the maximum over the tokens."""
    return x.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(dim=1)


def pool_min(x: Tensor, mask: Tensor) -> Tensor:
    """Return (B, D), the minimum over the tokens."""
    return x.masked_fill(~mask.unsqueeze(-1), torch.inf).amin(dim=1)


class SelfAttentivePooling(nn.Module):
    """The mean of a sentence's tokens, with a weight computed from each token."""

    def __init__(self, *, input_dim: int) -> None:
        super().__init__()
        # Without a bias, which would cancel in the softmax.
        self.linear = nn.Linear(input_dim, 1, bias=False)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Reduce (B, T, D) to (B, D)."""
        shares = masked_softmax(self.linear(x).squeeze(-1), mask)  # (B, T)
        return (shares.unsqueeze(1) @ x).squeeze(1)
