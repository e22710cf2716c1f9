"""Arithmetic in which a row's bits do not depend on the rows computed beside it.

A matrix product chooses its kernel by shape and number of threads, and kernels add in different
orders. Measured with MKL on 1 to 16 threads, the same row can differ in its last bits by how many
rows there are, by its place among them, and by the number of threads, unless the number of rows is
a multiple of 4, the inner dimension one of 8 and the outer one of 16. `sigmoid` of torch computes
the last few numbers of an array by another formula than the rest. All this makes a token's vector
depend on its batch-mates. So rows come in whole blocks here, weights are filled up with zeros to
such shapes (most of the published models have them already), and `sigmoid` is made of `tanh`, which
has no such seam. `tests/embed/test_independence.py` compares bits.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

# Twice what was measured, for CPUs with wider kernels; idle rows cost less than reading weights.
ROW_BLOCK = 8
OUTPUT_BLOCK = 16

# Smaller weights are in the cache anyway, and calling oneDNN takes longer than calling MKL.
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
    """Fill up an (M, K) weight with zeros, as `multiply` wants it."""
    num_outputs, num_inputs = weight.shape
    weight = extend_columns(weight, round_up(num_inputs))
    return extend_rows(weight, round_up(num_outputs, OUTPUT_BLOCK))


def lay_out(weight: Tensor) -> Tensor | None:
    """Return an extended weight as oneDNN keeps it, if it can and if that is worth the copy.

    For rows as few as those of a step this is up to 1.7 times as fast as MKL, and as steady. The
    functions are private to torch, so their absence, or a CPU that they do not serve, is no error.
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

    `weight` comes from `extend_weight`; `addend` is a bias (M,) or has one row a row (N, M).
    `laid_out` is the weight once more, from `lay_out`, where it is used often.
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
    weight = extend_weight(layer.weight)
    return multiply(x, weight, layer.bias, num_outputs=layer.out_features)


def sigmoid(x: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x)), the same bits wherever in an array a number stands."""
    return torch.tanh(x * 0.5) * 0.5 + 0.5
