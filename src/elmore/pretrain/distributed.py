"""Processes that train together, started by torchrun; one process is the special case.

Every process reads its share of the rows. Gradients become the mean over the processes, and what
the LSTMs remember is handed to all after every step, so that any process that is left when another
is lost can write a whole checkpoint.
"""

import gc
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from elmore.errors import ConfigError

# A held-out measurement or a checkpoint of one process may keep the others waiting this long.
PATIENCE = timedelta(minutes=60)


class Group:
    """The processes of a run; this one is `rank` of `size`."""

    def __init__(self, *, device: torch.device) -> None:
        self.device = device
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        self.num_local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        if self.size > 1:
            backend = "nccl" if device.type == "cuda" else "gloo"
            dist.init_process_group(backend, timeout=PATIENCE)

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and talks to the user."""
        return self.rank == 0

    def share_rows(self, num_rows: int, *, accumulation: int) -> int:
        """Return how many rows each process has."""
        if num_rows % (self.size * accumulation):
            raise ConfigError(
                f"training.rows = {num_rows} cannot be shared evenly by {self.size} processes "
                f"reading in {accumulation} parts; make rows a multiple of both together"
            )
        return num_rows // self.size

    def wrap(self, module: nn.Module) -> nn.Module:
        """Let the gradients of a module become the mean over the processes as they are computed."""
        if self.size == 1:
            return module
        return nn.parallel.DistributedDataParallel(module, broadcast_buffers=False)

    def average_(self, parameters: list[nn.Parameter]) -> None:
        """Make other gradients, sparse ones too, the mean over the processes."""
        if self.size == 1:
            return
        for parameter in parameters:
            if parameter.grad is not None and parameter.grad.is_sparse:
                parameter.grad = self._average_sparse(parameter.grad)
            elif parameter.grad is not None:
                dist.all_reduce(parameter.grad)
                parameter.grad /= self.size

    def add(self, numbers: list[float]) -> list[float]:
        """Return the sums over the processes."""
        if self.size == 1:
            return numbers
        total = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        return total.tolist()

    def gather_rows(self, rows: Tensor, *, dim: int) -> Tensor:
        """Put the rows of all processes together, in the order of their ranks."""
        if self.size == 1:
            return rows
        parts = [torch.empty_like(rows) for _ in range(self.size)]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts, dim=dim)

    def wait(self) -> None:
        """Let all processes come to the same point."""
        if self.size > 1:
            dist.barrier()

    def first_does(self, action: Callable[[], None]) -> None:
        """Run something in the first process; if it fails there, let all processes know."""
        failure: BaseException | None = None
        if self.is_first:
            try:
                action()
            except Exception as error:  # raised below, once the others know
                failure = error
        has_failed = self.add([float(failure is not None)])[0]
        if failure is not None:
            raise failure
        if has_failed:
            raise SystemExit(2)  # the first process says why

    def close(self) -> None:
        """Leave the group; every reference to a wrapped module must be gone by then."""
        if self.size > 1:
            # Without this order gloo's threads abort some runs after all is done.
            dist.barrier()
            gc.collect()
            dist.destroy_process_group()

    def _average_sparse(self, gradient: Tensor) -> Tensor:
        """Sum over the union of the rows that any process has."""
        gradient = gradient.coalesce()
        rows, values = gradient.indices()[0], gradient.values()
        union = self._gather_distinct(rows)
        buffer = values.new_zeros((len(union), *values.shape[1:]))
        buffer[torch.searchsorted(union, rows)] = values
        dist.all_reduce(buffer)
        buffer /= self.size
        return torch.sparse_coo_tensor(
            union[None], buffer, gradient.shape, is_coalesced=True, check_invariants=False
        )

    def _gather_distinct(self, rows: Tensor) -> Tensor:
        """Return the ascending distinct numbers of all processes."""
        longest = torch.tensor(len(rows), device=rows.device)
        dist.all_reduce(longest, op=dist.ReduceOp.MAX)
        padded = rows.new_full((int(longest),), -1)
        padded[: len(rows)] = rows
        union = self.gather_rows(padded, dim=0).unique()
        return union[union >= 0]


def local_rank() -> int:
    """Return the number of this process among those of its machine."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def is_lost(error: BaseException) -> bool:
    """Tell whether an error means that another process of the group has gone."""
    lost: tuple[type[Any], ...] = (dist.DistError,) if hasattr(dist, "DistError") else ()
    return isinstance(error, (RuntimeError, *lost)) and not isinstance(
        error, torch.OutOfMemoryError
    )
