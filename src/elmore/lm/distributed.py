"""Data-parallel training with processes started by torchrun; a single process is a special case.

Every process reads its share of the rows. Gradients are summed over the processes, and LSTM states
are gathered in all of them after every step, so that any process can write a complete checkpoint if
another is lost. Otherwise only the first process writes files. On several machines, the run folder
must be on storage that all of them see: after a restart, another process may be the first.
"""

import gc
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous

from elmore.errors import ConfigError, DataError, ElmoreError
from elmore.wording import count

# How long processes wait for one that measures or writes a checkpoint.
TIMEOUT = timedelta(minutes=60)
# torchrun ends all processes soon after one fails; the first must print the reason before that.
SECONDS_TO_PRINT = 1.0

T = TypeVar("T")


class Group:
    """The processes of a run; this is process `rank` of `size`."""

    def __init__(self, *, device: torch.device) -> None:
        self.device = device
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        self.num_local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        self.local_rank = int(os.environ.get("LOCAL_RANK", "0"))  # rank within its machine
        if self.size > 1:
            self._join()

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and talks to the user."""
        return self.rank == 0

    def share_rows(self, num_rows: int, *, accumulation: int) -> int:
        """Return the number of rows per process."""
        if num_rows % (self.size * accumulation):
            raise ConfigError(
                f"training.rows = {num_rows} cannot be divided evenly among "
                f"{count(self.size, 'process', plural='processes')} with training.accumulation = "
                f"{accumulation}; make rows a multiple of {self.size * accumulation}"
            )
        return num_rows // self.size

    def add_sparse(
        self, parameters: Iterable[nn.Parameter], *, dtype: torch.dtype | None = None
    ) -> None:
        """Sum sparse gradients over the processes, in place; they are sent as `dtype`."""
        if self.size == 1:
            return
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad = self._add_rows(parameter.grad.coalesce(), dtype=dtype)

    def add(self, numbers: list[float]) -> list[float]:
        """Return the sums over the processes."""
        if self.size == 1:
            return numbers
        total = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        return total.tolist()

    def add_tensors(self, tensors: Sequence[Tensor]) -> None:
        """Sum tensors over the processes, in place; shapes are the same in all of them."""
        if self.size > 1 and tensors:
            total = torch.cat([tensor.flatten() for tensor in tensors])
            dist.all_reduce(total)
            sums = total.split([tensor.numel() for tensor in tensors])
            for tensor, part in zip(tensors, sums, strict=True):
                tensor.copy_(part.view_as(tensor))

    def gather_rows(self, rows: Tensor, *, dim: int) -> Tensor:
        """Concatenate the rows of all processes, in the order of their ranks."""
        if self.size == 1:
            return rows
        parts = [torch.empty_like(rows) for _ in range(self.size)]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts, dim=dim)

    def run_on_all(self, action: Callable[[], T]) -> T:
        """Run `action` in every process; if any fails, all end and the first reports why."""
        if self.size == 1:
            return action()
        result: list[T] = []
        failure: Exception | None = None
        try:
            result.append(action())
        except Exception as error:  # raised below, once the others know
            failure = error
        reasons: list[str | None] = [None] * self.size
        dist.all_gather_object(reasons, None if failure is None else str(failure))
        if not any(reason is not None for reason in reasons):
            return result[0]
        if failure is not None and not (
            self.is_first or isinstance(failure, ElmoreError | OSError)
        ):
            raise failure  # a bug; only this process has the traceback
        if not self.is_first:
            exit_silently(2)
        if failure is not None:
            raise failure
        rank = next(rank for rank, reason in enumerate(reasons) if reason is not None)
        raise DataError(f"process {rank} of {self.size}: {reasons[rank]}")

    def run_on_first(self, action: Callable[[], T]) -> T | None:
        """Run `action` in the first process only; if it fails, all processes end."""
        return self.run_on_all(lambda: action() if self.is_first else None)

    def share(self, value: T) -> T:
        """Send a small value from the first process to all."""
        if self.size == 1:
            return value
        values = [value]
        dist.broadcast_object_list(values, device=self.device)
        return values[0]

    def share_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Send tensors from the first process to all; those of the other processes are ignored."""
        if self.size == 1:
            return dict(tensors)
        kinds = self.share({name: (t.shape, t.dtype) for name, t in tensors.items()})
        shared = {}
        for name, (shape, dtype) in kinds.items():
            tensor = torch.empty(shape, dtype=dtype, device=self.device)
            if self.is_first:
                tensor.copy_(tensors[name])
            dist.broadcast(tensor, src=0)
            shared[name] = tensor.cpu()
        return shared

    def check_same(self, facts: Mapping[str, Any]) -> None:
        """Raise an error if processes were started with different values."""
        mine = {name: json.dumps(value, sort_keys=True) for name, value in facts.items()}
        firsts = self.share(mine)

        def compare() -> None:
            for name, value in mine.items():
                if value != firsts[name]:
                    raise ConfigError(
                        f"its {name} differs from that of the first process; start all processes "
                        "with the same"
                    )

        self.run_on_all(compare)

    def close(self) -> None:
        """Wait for all processes, then leave the group."""
        if self.size > 1:
            # In any other order, gloo's threads sometimes abort a run that has finished.
            dist.barrier()
            gc.collect()
            dist.destroy_process_group()

    def _join(self) -> None:
        """Wait until all processes have joined the group."""
        try:
            store, _, _ = next(rendezvous("env://", timeout=TIMEOUT))
            if os.environ.get("GROUP_WORLD_SIZE", "1") == "1":
                # On one machine torchrun may keep the store when it restarts processes, with the
                # addresses of the old ones still in it.
                store = dist.PrefixStore(f"start-{count_restarts()}", store)  # type: ignore[attr-defined]
            dist.init_process_group(
                "nccl" if self.device.type == "cuda" else "gloo",
                store=store,
                rank=self.rank,
                world_size=self.size,
                timeout=TIMEOUT,
            )
        except (RuntimeError, ValueError) as error:
            raise ConfigError(
                f"process {self.rank} of {self.size} cannot reach the others "
                f"({str(error).splitlines()[0]:.200}); start them with torchrun, and check the "
                "network between the machines"
            ) from error

    def _add_rows(self, gradient: Tensor, *, dtype: torch.dtype | None) -> Tensor:
        """Sum a sparse gradient over the union of all processes' rows."""
        rows, values = gradient.indices()[0], gradient.values()
        union = self._gather_distinct(rows)
        buffer = values.new_zeros((len(union), *values.shape[1:]), dtype=dtype or values.dtype)
        buffer[torch.searchsorted(union, rows)] = values.to(buffer.dtype)
        dist.all_reduce(buffer)
        return torch.sparse_coo_tensor(
            union[None],
            buffer.to(values.dtype),
            gradient.shape,
            is_coalesced=True,
            check_invariants=False,
        )

    def _gather_distinct(self, rows: Tensor) -> Tensor:
        """Return the sorted distinct row numbers of all processes."""
        longest = torch.tensor(len(rows), device=rows.device)
        dist.all_reduce(longest, op=dist.ReduceOp.MAX)
        padded = rows.new_full((int(longest),), -1)
        padded[: len(rows)] = rows
        union = self.gather_rows(padded, dim=0).unique()
        return union[union >= 0]


def count_restarts() -> int:
    """Return how often torchrun has restarted the processes after losing some."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def exit_silently(status: int) -> NoReturn:
    """End a process other than the first without a message: the first prints it."""
    time.sleep(SECONDS_TO_PRINT)
    raise SystemExit(status)


def is_process_lost(error: RuntimeError) -> bool:
    """Return whether an error means that another process of the group was lost."""
    return isinstance(error, dist.DistError) or "gloo" in str(error)
