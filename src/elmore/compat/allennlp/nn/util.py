"""Drop the sentence markers of padded sentences.

Shapes: B sentences, T tokens and markers.
"""

import torch
from torch import Tensor

__all__ = ["remove_sentence_boundaries"]


def remove_sentence_boundaries(tensor: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return (B, T - 2, D) without markers, zero at padding, and its (B, T - 2) int64 mask."""
    tokens = torch.arange(tensor.shape[1] - 2, device=tensor.device) < mask.sum(1)[:, None] - 2
    return tensor[:, 1:-1].masked_fill(~tokens[..., None], 0), tokens.long()
