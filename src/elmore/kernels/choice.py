"""Decide what computes: the native kernel for single precision on the CPU, torch for the rest."""

from collections.abc import Iterable

import torch
from torch import Tensor

from elmore.kernels.library import Kernel, find_kernel


def find_kernel_for(tensors: Iterable[Tensor]) -> Kernel | None:
    """Return the kernel that computes with these tensors; None where torch does."""
    is_plain = all(
        tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in tensors
    )
    return find_kernel() if is_plain else None
