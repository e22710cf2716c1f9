"""Sentences of many lengths step by step: which tokens are read at each step, in each direction.

Shapes: B sentences, N their tokens in all, T the longest. "Flat" is sentence after sentence;
"packed" is step after step, the longest sentence first, so that the rows of a step are its first.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmore.text.batches import NUM_MARKERS


@dataclass(frozen=True, kw_only=True, slots=True)
class Packing:
    """The order in which the tokens of some sentences are read."""

    order: Tensor  # (B,) sentences from longest to shortest
    step_sizes: list[int]  # T numbers: sentences still being read at each step
    forward_lm: Tensor  # (N,) flat place of each packed row, reading left to right
    backward_lm: Tensor  # (N,) the same, reading right to left


def pack(lengths: Tensor, *, device: torch.device) -> Packing:
    """Plan the reading of sentences of these lengths."""
    # In numpy: the numbers are few, and what a call of torch costs would be most of the time.
    length = lengths.numpy()
    order = np.argsort(-length, kind="stable")
    sorted_length = length[order]
    start = (length.cumsum() - length)[order]
    longest = int(sorted_length[0]) if len(length) else 0
    is_read = np.arange(longest)[:, None] < sorted_length  # (T, B)
    step, row = is_read.nonzero()
    first = start[row]
    return Packing(
        order=_to_tensor(order, device),
        step_sizes=is_read.sum(axis=1).tolist(),
        forward_lm=_to_tensor(first + step, device),
        backward_lm=_to_tensor(first + (sorted_length - 1)[row] - step, device),
    )


def _to_tensor(places: NDArray[np.int64], device: torch.device) -> Tensor:
    return torch.from_numpy(places).to(device)


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


def drop_markers(flat: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Spread (..., N, D) over (..., B, T, D) without the marks around sentences; and the mask."""
    ends = lengths.cumsum(0)
    is_token = torch.ones(flat.shape[-2], dtype=torch.bool)
    is_token[ends - 1] = False
    is_token[ends - lengths] = False
    return to_padded(flat[..., is_token.to(flat.device), :], lengths - NUM_MARKERS)
