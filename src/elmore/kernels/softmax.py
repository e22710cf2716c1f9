"""The exponents of a softmax, with what its loss and gradients need.

Shapes: N rows, C candidates.
"""

import torch
from torch import Tensor

from elmore.kernels.library import Kernel
from elmore.kernels.packed import check, check_floats
from elmore.kernels.tokens import run_by_rows


def take_exponents(
    kernel: Kernel, logits: Tensor, target: Tensor, columns: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Replace (N, C) logits by exponents, 0 at the target's column if it is not -1.

    Return the (N,) losses, the gradients of the (N,) logits of the targets, and one over the sums
    of all exponents.
    """
    num_rows, num_candidates = logits.shape
    check_floats("logits", logits, (num_rows, num_candidates))
    check_floats("logits of targets", target, (num_rows,))
    if columns.dtype != torch.int64 or len(columns) != num_rows or not logits.is_contiguous():
        raise ValueError("expected contiguous logits and one int64 column per row")
    if num_rows and not -1 <= int(columns.min()) <= int(columns.max()) < num_candidates:
        raise IndexError(f"expected columns from -1 to {num_candidates - 1}")
    target, columns = target.contiguous(), columns.contiguous()
    losses, own, shares = (torch.empty_like(target) for _ in range(3))

    def take(rows: slice) -> None:
        check(
            kernel.functions.elmore_take_exponents(
                logits[rows].data_ptr(),
                rows.stop - rows.start,
                num_candidates,
                columns[rows].data_ptr(),
                target[rows].data_ptr(),
                losses[rows].data_ptr(),
                own[rows].data_ptr(),
                shares[rows].data_ptr(),
            )
        )

    run_by_rows(take, num_rows)
    return losses, own, shares
