"""Check tensors before their addresses go to native code, which checks nothing."""

from collections.abc import Sequence

import torch
from torch import Tensor


def check_floats(name: str, tensor: Tensor, shape: Sequence[int]) -> None:
    """Raise an error unless a tensor is float32, on the CPU and has this shape."""
    is_plain = tensor.dtype == torch.float32 and tensor.device.type == "cpu"
    if not is_plain or tensor.shape != tuple(shape):
        raise ValueError(
            f"expected {name} of shape {list(shape)} in float32 on the CPU, "
            f"got {list(tensor.shape)} in {tensor.dtype} on {tensor.device}"
        )
