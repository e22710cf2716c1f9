"""Sentences of many lengths step by step: which tokens are read at each step, in each direction.

Shapes: B sentences, N their tokens in all, T the longest. "Flat" is sentence after sentence;
"packed" is step after step, the longest sentence first, so that the rows of a step are its first.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Packing:
    """The order in which the tokens of some sentences are read."""

    order: Tensor  # (B,) sentences from longest to shortest
    step_sizes: list[int]  # T numbers: sentences still being read at each step
    forward_lm: Tensor  # (N,) flat place of each packed row, reading left to right
    backward_lm: Tensor  # (N,) the same, reading right to left


def pack(lengths: Tensor, *, device: torch.device) -> Packing:
    """Plan the reading of sentences of these lengths."""
    order = torch.argsort(lengths, descending=True, stable=True)
    sorted_lengths = lengths[order]
    starts = (lengths.cumsum(0) - lengths)[order]
    longest = int(sorted_lengths[0]) if len(lengths) else 0
    is_read = torch.arange(longest)[:, None] < sorted_lengths  # (T, B)
    step, row = is_read.nonzero(as_tuple=True)
    return Packing(
        order=order.to(device),
        step_sizes=is_read.sum(dim=1).tolist(),
        forward_lm=(starts[row] + step).to(device),
        backward_lm=(starts[row] + sorted_lengths[row] - 1 - step).to(device),
    )


def invert(places: Tensor) -> Tensor:
    """Return the permutation that undoes `places`."""
    inverse = torch.empty_like(places)
    inverse[places] = torch.arange(len(places), device=places.device)
    return inverse


def to_padded(flat: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Spread (..., N, D) over (..., B, T, D), zero where there is no token; and the (B, T) mask."""
    longest = int(lengths.max()) if len(lengths) else 0
    mask = (torch.arange(longest) < lengths[:, None]).to(flat.device)
    padded = flat.new_zeros((*flat.shape[:-2], *mask.shape, flat.shape[-1]))
    padded[..., mask, :] = flat
    return padded, mask
