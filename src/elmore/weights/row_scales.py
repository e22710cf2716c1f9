"""Matrices in int8 with one scale per row, for files.

Shapes: M rows, N columns.
"""

import torch
from torch import Tensor

LARGEST = 127
SUFFIX = ".row_scales"
"""In a file, the scales of a matrix have its name and this suffix."""

# A scale keeps 16 of its 24 significant bits, so that its product with an integer up to 127 is
# exact in single precision. Reading then gives the same numbers everywhere, and a matrix that was
# read from int8 is stored in the same bytes again.
_DROPPED_BITS = (1 << 8) - 1


def quantize_rows(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return (M, N) int8 and (M,) scales; each number is off by at most half the scale of its row.

    >>> quantize_rows(torch.tensor([[254.0, -100.6], [0.0, 0.0]]))
    (tensor([[127, -50],
            [  0,   0]], dtype=torch.int8), tensor([2., 0.]))
    """
    exact = matrix.detach().double()
    needed = (exact.abs().amax(dim=1) / LARGEST).float()
    bits = needed.view(torch.int32)
    scales = ((bits + _DROPPED_BITS) & ~_DROPPED_BITS).view(torch.float32)  # rounded up
    divisors = torch.where(scales > 0, scales, 1.0).double()
    return (exact / divisors[:, None]).round().to(torch.int8), scales


def restore_rows(integers: Tensor, scales: Tensor) -> Tensor:
    """Return the (M, N) matrix in single precision."""
    return integers.float() * scales[:, None]
