"""What native code is given: packed weights (panels of outputs, in some precision), and checks.

Shapes: O outputs, I inputs of a weight matrix.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmore.config import Precision
from elmore.kernels import interface
from elmore.kernels.library import Kernel
from elmore.kernels.memory import allocate

# The codes for the precisions in exports.cpp.
CODES = {Precision.F32: 0, Precision.BF16: 1, Precision.INT8: 2, Precision.F16: 3}

# Weights compared at a time.
ROWS_AT_ONCE = 256


def narrow(precision: Precision, *weights: Tensor) -> Precision:
    """Return f16 instead of f32 if it holds all weights exactly, else the given precision.

    That is so in models that were stored in f16. Kernels then compute the same bits from half the
    bytes.
    """
    if precision is Precision.F32 and all(map(_fits_f16, weights)):
        return Precision.F16
    return precision


def _fits_f16(weight: Tensor) -> bool:
    blocks = [weight[:1], *weight.split(ROWS_AT_ONCE)]  # one row is enough to refuse most
    return all(block.half().float().equal(block) for block in blocks)


class PackedMatrix:
    """A packed weight matrix (O, I).

    `num_parts` matrices of equal shape can be packed into one with interleaved panels, so that
    the gates of the same cells are next to each other.
    """

    def __init__(
        self,
        kernel: Kernel,
        weight: Tensor,
        *,
        precision: Precision,
        num_parts: int = 1,
        memory: Callable[[int], NDArray[np.uint8]] = allocate,
    ) -> None:
        check_floats("a weight", weight, weight.shape)
        weight = weight.detach()
        num_outputs, num_inputs = weight.shape
        sources = interleave(num_outputs, num_parts=num_parts, panel=kernel.panel)
        num_panels = len(sources) // kernel.panel
        num_bytes = kernel.functions.elmore_packed_bytes(CODES[precision], num_inputs, num_panels)
        self.kernel_name = kernel.name
        self.panel = kernel.panel
        self.num_inputs = num_inputs
        self.num_panels = num_panels
        self.panels = memory(num_bytes)
        # int8 has a scale and a correction per output.
        self.scales = np.zeros(2 * len(sources) if precision is Precision.INT8 else 0, np.float32)
        check(
            kernel.functions.elmore_pack(
                CODES[precision],
                weight.data_ptr(),
                *weight.stride(),
                num_inputs,
                sources.ctypes.data,
                num_panels,
                self.panels.ctypes.data,
                self.scales.ctypes.data,
            )
        )

    @classmethod
    def join(cls, parts: Sequence["PackedMatrix"]) -> "PackedMatrix":
        """Interleave the panels of matrices of equal shape, as if they had been packed together."""
        joined = cls.__new__(cls)
        joined.__dict__.update(parts[0].__dict__)
        joined.num_panels = len(parts) * parts[0].num_panels
        joined.panels = allocate(len(parts) * parts[0].panels.nbytes)
        joined.scales = np.empty(len(parts) * len(parts[0].scales), np.float32)
        panels = joined.panels.reshape(
            -1, len(parts), parts[0].panels.nbytes // parts[0].num_panels
        )
        # The scales of all panels come before the corrections of all panels.
        scales = joined.scales.reshape(-1, len(parts), joined.panel)
        for number, part in enumerate(parts):
            panels[:, number] = part.panels.reshape(part.num_panels, -1)
            scales[:, number] = part.scales.reshape(-1, joined.panel)
        return joined

    def pointer(self) -> interface.Matrix:
        """Return the struct for native functions; valid while this object lives."""
        return interface.Matrix(
            self.panels.ctypes.data, self.scales.ctypes.data, self.num_inputs, self.num_panels
        )

    @property
    def num_bytes(self) -> int:
        """The memory in use."""
        return self.panels.nbytes + self.scales.nbytes

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "panels": self.panels.tobytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        panels = np.frombuffer(state["panels"], np.uint8)
        self.__dict__.update(state, panels=allocate(len(panels)))
        self.panels[:] = panels


def check(status: int) -> None:
    """Raise an error if a native function returned a nonzero status."""
    if status:
        raise MemoryError("not enough memory for this batch")


def check_floats(name: str, tensor: Tensor, shape: Sequence[int]) -> None:
    """Raise an error unless native code, which checks nothing, can use a tensor of this shape."""
    is_plain = tensor.dtype == torch.float32 and tensor.is_cpu
    if not is_plain or tensor.shape != tuple(shape):
        raise ValueError(
            f"expected {name} of shape {list(shape)} in float32 on the CPU, "
            f"got {list(tensor.shape)} in {tensor.dtype} on {tensor.device}"
        )


def interleave(num_outputs: int, *, num_parts: int, panel: int) -> NDArray[np.int32]:
    """Return the output at each packed position: one panel per part in turn, -1 for padding.

    >>> interleave(6, num_parts=2, panel=2).tolist()
    [0, 1, 3, 4, 2, -1, 5, -1]
    """
    size = num_outputs // num_parts
    outputs = np.full((num_parts, -(-size // panel) * panel), -1, np.int32)
    outputs[:, :size] = np.arange(num_outputs).reshape(num_parts, size)
    return outputs.reshape(num_parts, -1, panel).swapaxes(0, 1).reshape(-1)


def interleave_numbers(numbers: Tensor, *, num_parts: int, panel: int) -> Tensor:
    """Reorder an (O,) bias like the panels, with zeros as padding."""
    check_floats("a bias", numbers, (len(numbers),))
    outputs = torch.from_numpy(interleave(len(numbers), num_parts=num_parts, panel=panel)).long()
    return torch.where(outputs < 0, 0.0, numbers.detach()[outputs.clamp(min=0)]).contiguous()
