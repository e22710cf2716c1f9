"""Padded tensors, which the old libraries return.

Shapes: B sentences, N tokens and markers of all sentences one after another.
"""

import torch
from torch import Tensor


def pad(flat: Tensor, lengths: Tensor, *, width: int) -> tuple[Tensor, Tensor]:
    """Pad (..., N, D) to (..., B, width, D) with zeros; also return the (B, width) bool mask."""
    mask = (torch.arange(width) < lengths[:, None]).to(flat.device)
    padded = flat.new_zeros((*flat.shape[:-2], *mask.shape, flat.shape[-1]))
    padded[..., mask, :] = flat
    return padded, mask


def drop_ends(flat: Tensor, lengths: Tensor) -> Tensor:
    """Drop the first and the last position of each sentence in (..., N, D)."""
    ends = lengths.cumsum(0)
    is_kept = torch.ones(flat.shape[-2], dtype=torch.bool)
    is_kept[ends - 1] = is_kept[ends - lengths] = False
    return flat[..., is_kept, :]
