"""Choose between the native kernel (float32 on the CPU) and torch (everything else)."""

from collections.abc import Iterable

import torch
from torch import Tensor

from elmore.kernels.library import Kernel, find_kernel


def find_kernel_for(tensors: Iterable[Tensor]) -> Kernel | None:
    """Return the kernel to use for these tensors, or None for torch."""
    is_plain = all(
        tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in tensors
    )
    return find_kernel() if is_plain else None
