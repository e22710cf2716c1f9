"""Show when gradients are sent: during the backward pass, or after it.

    python -m benchmarks.gradient_overlap CORPUS [--config small] [--gigabits 2] [--steps 8]

CORPUS is a folder of `elmore prepare`. Two processes train on this machine, with one thread each,
over a loopback interface that is limited to --gigabits per second for both of them together (in a
network namespace; needs `tc` and `unshare`). Every portion of gradients is noted when it is sent
and when its sum has arrived. The same steps are then run with all portions sent after the backward
pass. Prints Markdown, with the times of the median step of the first process.
"""

import argparse
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.distributed as dist

from benchmarks.local_steps import make_trainer
from benchmarks.machine import describe_machine
from elmore.corpus.corpus import open_corpus
from elmore.lm import gradient_sum
from elmore.lm.distributed import Group
from elmore.lm.gradient_sum import GradientSum
from elmore.lm.settings import load_settings
from elmore.settings import find_config

NUM_PROCESSES = 2
LIMITED = (
    "ip link set lo up && "
    "tc qdisc add dev lo root tbf rate {gigabits}gbit burst 1mb latency 200ms && "
    'exec "$@"'
)


@dataclass(kw_only=True)
class StepTimes:
    """Moments of a step, in seconds from the start of the backward pass."""

    sent: list[float] = field(default_factory=list)  # per portion
    arrived: list[float] = field(default_factory=list)
    num_bytes: list[int] = field(default_factory=list)
    backward_end: float = 0.0
    end: float = 0.0  # when all sums have arrived


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gradient_overlap")
    parser.add_argument("corpus")
    parser.add_argument("--config", default="small")
    parser.add_argument("--gigabits", type=float, default=2)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--limited", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.limited:
        limit = LIMITED.format(gigabits=arguments.gigabits)
        again = [sys.executable, "-m", "benchmarks.gradient_overlap", *sys.argv[1:], "--limited"]
        command = ["unshare", "-rn", "sh", "-c", limit, "sh", *again]
        sys.exit(subprocess.run(command, check=False).returncode)
    for name, value in describe_machine().items():
        print(f"- {name}: {value}")
    print_overlap(*run(arguments))


def run(arguments: argparse.Namespace) -> tuple[list[StepTimes], list[StepTimes]]:
    """Return the times of steps that send early, and of steps that send late."""
    context = get_context("spawn")
    results: SimpleQueue[Any] = context.SimpleQueue()
    processes = [
        context.Process(target=train, args=(rank, vars(arguments), results))
        for rank in range(NUM_PROCESSES)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        if process.exitcode:
            raise SystemExit(f"a process ended with status {process.exitcode}")
    return results.get()


def train(rank: int, arguments: dict[str, Any], results: "SimpleQueue[Any]") -> None:
    torch.set_num_threads(1)
    os.environ |= {
        # The namespace is new, so any port is free.
        **{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29400", "GLOO_SOCKET_IFNAME": "lo"},
        **{"RANK": str(rank), "WORLD_SIZE": str(NUM_PROCESSES)},
    }
    group = Group(device=torch.device("cpu"))
    settings = load_settings(find_config(arguments["config"]), ["training.max_steps=1000"])
    trainer = make_trainer(settings, open_corpus(Path(arguments["corpus"])), group)
    watch = Watch()
    kinds = []
    for sends_early in (True, False):
        watch.sends_early = sends_early
        for _ in range(arguments["steps"] + 1):
            trainer.step([])
        kinds.append(watch.steps[1:])  # the first one allocates
        watch.steps = []
    if rank == 0:
        results.put(tuple(kinds))
    group.close()


class Watch:
    """Notes when gradients are sent; can have them sent after the backward pass."""

    def __init__(self) -> None:
        self.steps: list[StepTimes] = []
        self.sends_early = True
        self._start = 0.0
        self._under_way: list[tuple[StepTimes, int, Any]] = []
        threading.Thread(target=self._poll, daemon=True).start()
        plain_begin, plain_finish, plain_reduce = (
            GradientSum.begin,
            GradientSum.finish,
            dist.all_reduce,
        )

        def begin(sums: GradientSum) -> None:
            self.steps.append(StepTimes())
            self._start = time.perf_counter()
            if self.sends_early:
                plain_begin(sums)

        def finish(sums: GradientSum) -> None:
            self.steps[-1].backward_end = self._now()
            plain_finish(sums)
            self.steps[-1].end = self._now()
            while self._under_way:  # the thread is about to note the last one
                time.sleep(0.0005)

        def all_reduce(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            work = plain_reduce(tensor, *args, **kwargs)
            if kwargs.get("async_op"):
                step = self.steps[-1]
                step.sent.append(self._now())
                step.arrived.append(0.0)
                step.num_bytes.append(tensor.numel() * tensor.element_size())
                self._under_way.append((step, len(step.sent) - 1, work))
            return work

        GradientSum.begin, GradientSum.finish = begin, finish  # type: ignore[method-assign]
        gradient_sum.dist.all_reduce = all_reduce  # type: ignore[attr-defined]

    def _poll(self) -> None:
        while True:
            for entry in list(self._under_way):
                step, number, work = entry
                if work.is_completed():
                    step.arrived[number] = self._now()
                    self._under_way.remove(entry)
            time.sleep(0.001)

    def _now(self) -> float:
        return time.perf_counter() - self._start


def print_overlap(early: list[StepTimes], late: list[StepTimes]) -> None:
    """Print the portions of a step, and what sending early gains."""
    shown = sorted(early, key=lambda step: step.end)[len(early) // 2]
    print("\n| portion | MB | sent, ms | arrived, ms |")
    print("|---:|---:|---:|---:|")
    rows = zip(shown.num_bytes, shown.sent, shown.arrived, strict=True)
    for number, (size, sent, arrived) in enumerate(rows, start=1):
        print(f"| {number} | {size / 1e6:.1f} | {sent * 1e3:.0f} | {arrived * 1e3:.0f} |")
    in_time = sum(
        size
        for size, arrived in zip(shown.num_bytes, shown.arrived, strict=True)
        if arrived <= shown.backward_end
    )
    print(
        f"\nthe backward pass ended after {shown.backward_end * 1e3:.0f} ms; "
        f"{in_time / sum(shown.num_bytes):.0%} of the bytes had arrived by then"
    )
    print("\n| gradients are sent | backward pass, ms | all sums there, ms | of it, waiting, ms |")
    print("|---|---:|---:|---:|")
    for name, steps in (("during the backward pass", early), ("after it", late)):
        backward = median(step.backward_end for step in steps)
        end = median(step.end for step in steps)
        waiting = median(step.end - step.backward_end for step in steps)
        print(f"| {name} | {backward * 1e3:.0f} | {end * 1e3:.0f} | {waiting * 1e3:.0f} |")


if __name__ == "__main__":
    main()
