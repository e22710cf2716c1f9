"""Arithmetic in which a row's bits do not depend on the other rows.

Matrix products choose a kernel by shape and number of threads, and kernels sum in different orders.
Measured with MKL on 1 to 16 threads, the last bits of a row can depend on the number of rows, on
its position among them and on the number of threads, unless the number of rows is a multiple of 4,
the inner dimension of 8 and the outer dimension of 16. torch's `sigmoid` uses another formula for
the last few numbers of an array. All this makes a token's vector depend on the rest of its batch.
So here rows come in whole blocks, weights are zero-padded to such shapes (most published models
already have them), and `sigmoid` is computed with `tanh`, which has no such exception.
`tests/embed/test_independence.py` compares bits.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmore.kernels import products
from elmore.kernels.products import find_product_kernel

# Twice the measured number, for CPUs with wider kernels; extra rows cost less than loading weights.
ROW_BLOCK = 8
OUTPUT_BLOCK = 16

# Smaller weights are in the cache anyway, and a oneDNN call has more overhead than MKL.
WORTH_LAYING_OUT = 2**16


def round_up(number: int, block: int = ROW_BLOCK) -> int:
    """Return the next multiple of a block.

    >>> [round_up(n) for n in (0, 1, 8, 9)]
    [0, 8, 8, 16]
    """
    return -(-number // block) * block


def extend_rows(x: Tensor, num_rows: int) -> Tensor:
    """Add zero rows below (N, ...) up to `num_rows`."""
    missing = num_rows - len(x)
    return x if missing == 0 else torch.cat([x, x.new_zeros((missing, *x.shape[1:]))])


def extend_columns(x: Tensor, num_columns: int) -> Tensor:
    """Add zeros to the right of (..., K) up to `num_columns`."""
    missing = num_columns - x.shape[-1]
    return x if missing == 0 else functional.pad(x, (0, missing))


def extend_weight(weight: Tensor) -> Tensor:
    """Zero-pad an (M, K) weight for `multiply`."""
    num_outputs, num_inputs = weight.shape
    weight = extend_columns(weight, round_up(num_inputs))
    return extend_rows(weight, round_up(num_outputs, OUTPUT_BLOCK))


def lay_out(weight: Tensor) -> Tensor | None:
    """Return an extended weight in oneDNN's layout, or None if not possible or not worth a copy.

    With the few rows of a step this is up to 1.7 times faster than MKL, and its bits are as stable.
    The functions are private to torch, so they may be missing or not support this CPU.
    """
    is_needed_by_autograd = torch.is_grad_enabled() and weight.requires_grad
    is_plain = weight.device.type == "cpu" and weight.dtype == torch.float32
    if is_needed_by_autograd or not is_plain or weight.numel() < WORTH_LAYING_OUT:
        return None
    try:
        return torch.ops.mkldnn._reorder_linear_weight(weight, None)
    except (AttributeError, RuntimeError):
        return None


def multiply(
    x: Tensor,
    weight: Tensor,
    addend: Tensor | None = None,
    *,
    num_outputs: int,
    laid_out: Tensor | None = None,
) -> Tensor:
    """Return `x @ weight.t() + addend` for whole blocks of rows of (N, K), `num_outputs` wide.

    `weight` comes from `extend_weight`; `addend` is a bias (M,) or one row per row (N, M).
    `laid_out` is the same weight from `lay_out`, for weights that are used often.
    """
    assert len(x) % ROW_BLOCK == 0
    x = extend_columns(x, weight.shape[1])
    if laid_out is not None:
        product = torch.ops.mkldnn._linear_pointwise(x, laid_out, None, "none", [], "")
        if addend is not None:
            product = product.add_(extend_columns(addend, len(weight)))
    elif addend is None:
        product = x @ weight.t()
    else:
        product = torch.addmm(extend_columns(addend, len(weight)), x, weight.t())
    return product if num_outputs == len(weight) else product[:, :num_outputs]


def apply_linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """Apply a linear layer to whole blocks of rows."""
    is_training = torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")
    # Decided by the weight alone, so that the bits of a row do not depend on the other rows.
    if is_training and layer.weight.numel() >= WORTH_LAYING_OUT:
        kernel = find_product_kernel([x, layer.weight, layer.bias])
        if kernel is not None:
            return products.apply_linear(kernel, x, layer.weight, layer.bias)
    weight = extend_weight(layer.weight)
    return multiply(x, weight, layer.bias, num_outputs=layer.out_features)


def sigmoid(x: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x)), with bits that do not depend on the position in the array."""
    return torch.tanh(x * 0.5) * 0.5 + 0.5
