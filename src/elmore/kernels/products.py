"""Large matrix products, by the native kernel where it is faster than torch's library.

With AVX-512 the kernel reaches the speed of the machine. torch's library (MKL) was half as fast on
an AMD CPU (Zen 5). With AVX2 both are about equally fast, and torch is used.

Shapes: N rows, I inputs, O outputs.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from elmore.config import Precision
from elmore.kernels.library import Kernel, find_kernel_for
from elmore.kernels.packed import PackedMatrix
from elmore.kernels.scratch import Take, borrow
from elmore.kernels.tokens import multiply_rows

# Outputs per panel of the kernels with AVX-512.
WIDE_PANEL = 32
# Below this many products of numbers, packing costs more than it saves.
MIN_PRODUCTS = 1 << 22


def find_product_kernel(tensors: Iterable[Tensor]) -> Kernel | None:
    """Return the kernel if it multiplies these tensors faster than torch."""
    kernel = find_kernel_for(tensors)
    return kernel if kernel is not None and kernel.panel == WIDE_PANEL else None


def multiply_packed(
    kernel: Kernel,
    x: Tensor,
    weight: Tensor,
    *,
    take: Take,
    bias: Tensor | None = None,
    precision: Precision = Precision.F32,
    out: Tensor | None = None,
) -> Tensor:
    """Return (N, I) times the transpose of (O, I), plus a bias (O,): (N, O)."""
    packed = PackedMatrix(kernel, weight, precision=precision, memory=take)
    bias = weight.new_zeros(len(weight)) if bias is None else bias
    return multiply_rows(kernel, packed, x, bias, precision=precision, out=out)


def find_kernel_to_multiply(x: Tensor, y: Tensor) -> Kernel | None:
    """Return the kernel that `multiply` uses for (N, I) times (I, O), or None for torch."""
    return None if len(x) * y.numel() < MIN_PRODUCTS else find_product_kernel([x, y])


def multiply(x: Tensor, y: Tensor, *, precision: Precision = Precision.F32) -> Tensor:
    """Return `x @ y` without gradients: (N, I) times (I, O).

    The kernel rounds the factors to `precision`; torch always computes in f32.
    """
    kernel = find_kernel_to_multiply(x, y)
    if kernel is None:
        return x @ y
    with borrow() as take:
        product = partial(multiply_packed, kernel, take=take, precision=precision)
        # The kernel reads whole rows of one factor. A transposed one would have to be copied, so
        # the transpose of the product is computed if the other one is smaller.
        if x.stride(1) != 1 and y.numel() < x.numel():
            return product(y.t().contiguous(), x).t().contiguous()
        return product(x.contiguous(), y.t())


def apply_linear(kernel: Kernel, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return `x @ weight.t() + bias` with gradients: (N, O).

    The bits of a row do not depend on the other rows, because the kernel is used for any number.
    """
    return _Linear.apply(kernel, x, weight, bias)  # type: ignore[no-untyped-call]


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kernel: Kernel, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        with borrow() as take:
            return multiply_packed(kernel, x, weight, bias=bias, take=take)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        _, needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        gradient = gradient.contiguous()
        return (
            None,
            multiply(gradient, weight) if needs_x else None,
            multiply(gradient.t(), x) if needs_weight else None,
            gradient.sum(dim=0) if needs_bias else None,
        )
