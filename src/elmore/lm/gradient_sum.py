"""Sum gradients over the processes of a run, while the backward pass is still running.

The order in which an all-reduce adds numbers depends on their position in the buffer. torch's
DistributedDataParallel arranges its buckets differently in its first step than in later ones, so a
run resumed from a checkpoint would differ in the last bits from one that was never stopped. Here
the arrangement is always the same.
"""

from collections.abc import Iterable, Sequence
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor, nn

# Smaller gradients are sent together with the next ones.
PORTION_BYTES = 8 << 20


class GradientSum:
    """Sums the dense gradients of some parameters over all processes.

    `dtype` is the format in which they are sent and added; None for their own.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], *, dtype: torch.dtype | None = None
    ) -> None:
        self._dtype = dtype
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        # Parameters closest to the loss get their gradients first.
        self._portions = divide(trained[::-1], portion_bytes=PORTION_BYTES)
        self._num_missing: list[int] = []  # per portion; empty while gradients only accumulate
        self._sent: list[tuple[Tensor, dist.Work]] = []
        for number, portion in enumerate(self._portions):
            for parameter in portion:
                parameter.register_post_accumulate_grad_hook(partial(self._note, number))

    def begin(self) -> None:
        """Send gradients during the next backward pass, the last one of its step."""
        self._num_missing = [len(portion) for portion in self._portions]

    def finish(self) -> None:
        """Replace the gradients with their sums."""
        while len(self._sent) < len(self._portions):  # some have no gradient
            self._send()
        for portion, (sums, work) in zip(self._portions, self._sent, strict=True):
            work.wait()
            of_each = sums.split([parameter.numel() for parameter in portion])
            for parameter, values in zip(portion, of_each, strict=True):
                parameter.grad = values.to(parameter.dtype).view_as(parameter)
        self._num_missing, self._sent = [], []

    def _note(self, number: int, _parameter: Tensor) -> None:
        if not self._num_missing:
            return
        self._num_missing[number] -= 1
        # Send in the same order in all processes, no matter which is complete first.
        while len(self._sent) < len(self._portions) and not self._num_missing[len(self._sent)]:
            self._send()

    def _send(self) -> None:
        portion = self._portions[len(self._sent)]
        values = torch.cat(
            [
                torch.zeros_like(parameter).flatten()
                if parameter.grad is None
                else parameter.grad.flatten()
                for parameter in portion
            ]
        )
        values = values if self._dtype is None else values.to(self._dtype)
        self._sent.append((values, dist.all_reduce(values, async_op=True)))


def divide(parameters: Sequence[nn.Parameter], *, portion_bytes: int) -> list[list[nn.Parameter]]:
    """Split parameters into portions of at least `portion_bytes`; the last may be smaller."""
    portions: list[list[nn.Parameter]] = []
    room = 0
    for parameter in parameters:
        if room <= 0:
            portions.append([])
            room = portion_bytes
        portions[-1].append(parameter)
        room -= parameter.numel() * parameter.element_size()
    return portions
