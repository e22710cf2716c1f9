"""Arithmetic in which a row's bits do not depend on the rows computed beside it.

A matrix product chooses its kernel by the number of rows, and kernels add in different orders:
measured with MKL, a row computed in a product of 1 to 11 rows can differ in its last bits from the
same row among many, on 1 to 32 threads, unless their number is a multiple of 4. `sigmoid` of torch
computes the last few numbers of an array by another formula than the rest. Both make a token's
vector depend on its batch-mates. So rows come in whole blocks here, and `sigmoid` is made of
`tanh`, which has no such seam. `tests/embed/test_independence.py` compares bits.
"""

import torch
from torch import Tensor

# Twice what was measured, for CPUs with wider kernels; idle rows cost less than reading weights.
ROW_BLOCK = 8


def round_up(number: int) -> int:
    """Return the next multiple of ROW_BLOCK.

    >>> [round_up(n) for n in (0, 1, 8, 9)]
    [0, 8, 8, 16]
    """
    return -(-number // ROW_BLOCK) * ROW_BLOCK


def extend_rows(x: Tensor, num_rows: int) -> Tensor:
    """Add zero rows below (N, ...) up to `num_rows`."""
    missing = num_rows - len(x)
    return x if missing == 0 else torch.cat([x, x.new_zeros((missing, *x.shape[1:]))])


def sigmoid(x: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x)), the same bits wherever in an array a number stands."""
    return torch.tanh(x * 0.5) * 0.5 + 0.5
