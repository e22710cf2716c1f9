"""Measure how close a training step comes to the speed of large matrix products, and its parts.

    OMP_NUM_THREADS=1 python -m benchmarks.training_limit CORPUS [--repeats 5] [--set K=V]

Runs steps of the English recipe and of `small`. The operations of all matrix products of a step,
forward and backward, divided by the step's CPU time, are compared with the fastest f32 product of
the same run (torch's or elmore's own). Times are medians of CPU time, so run it with one thread.
The parts are from one more step under torch's profiler. Prints Markdown tables.
"""

import argparse
import time
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.pretraining_parts import Case, ElmoreRun
from elmore.config import Precision
from elmore.jobs.freed_memory import keeping_freed_memory
from elmore.kernels import products, training
from elmore.kernels.library import find_kernel
from elmore.kernels.packed import PackedMatrix
from elmore.kernels.tokens import PackedLinear
from elmore.model import summed_loss

ENGLISH = Path(__file__).parents[1] / "recipes" / "english" / "settings.toml"
WANTED = {"English": 0.75, "small": 0.70}
SIDE = 2048


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--models", nargs="+", choices=list(WANTED), default=list(WANTED))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--set", dest="changes", action="append", default=[])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(
        "| model | tokens | step, CPU ms | tokens/CPU-s | GFLOP/s | limit | share | target | met |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    parts = {}
    for name in arguments.models:
        config = ENGLISH if name == "English" else name
        case = Case.open(arguments.corpus, config=config, changes=arguments.changes)
        run = ElmoreRun(case)
        clock = FlopClock()
        times, limits = [], []
        with keeping_freed_memory():  # as in `elmore pretrain`
            run.step()
            with clock:
                run.step()
            for _ in range(arguments.repeats):
                limits += [product_gflops(), own_product_gflops()]
                started = time.process_time()
                result = run.step()
                times.append(time.process_time() - started)
        seconds, limit = median(times), max(limits)
        gflops = clock.flops / seconds / 1e9
        share, wanted = gflops / limit, WANTED[name]
        print(
            f"| {name} | {result.num_predictions:,} | {1000 * seconds:,.0f} "
            f"| {result.num_predictions / seconds:,.0f} | {gflops:.0f} | {limit:.0f} "
            f"| {share:.0%} | {wanted:.0%} | {'yes' if share >= wanted else 'no'} |",
            flush=True,
        )
        parts[name] = (clock, seconds)
    for name, (clock, seconds) in parts.items():
        print(f"\n{name}:\n")
        clock.show(seconds)


def product_gflops() -> float:
    left, right = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)
    started = time.process_time()
    left @ right
    return 2 * SIDE**3 / (time.process_time() - started) / 1e9


def own_product_gflops() -> float:
    kernel = find_kernel()
    if kernel is None:
        return 0.0
    layer = PackedLinear(
        kernel, torch.randn(SIDE, SIDE), torch.zeros(SIDE), precision=Precision.F32
    )
    rows = torch.randn(SIDE, SIDE)
    started = time.process_time()
    layer.apply(rows)
    return 2 * SIDE**3 / (time.process_time() - started) / 1e9


class FlopClock:
    """Counts the operations of matrix products in a step, and times its parts."""

    def __init__(self) -> None:
        self.flops = 0
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.part_flops: defaultdict[str, int] = defaultdict(int)

    def __enter__(self) -> "FlopClock":
        self._kept = [
            (training._Direction, "run_forward", training._Direction.run_forward),
            (training._Direction, "run_backward", training._Direction.run_backward),
            (PackedMatrix, "__init__", PackedMatrix.__init__),
            (products, "multiply_rows", products.multiply_rows),
            (summed_loss, "multiply_rows", summed_loss.multiply_rows),
        ]
        self._wrap(training._Direction, "run_forward", "LSTM, forward", forward_flops)
        self._wrap(training._Direction, "run_backward", "LSTM, backward", backward_flops)
        self._wrap(products, "multiply_rows", "products by elmore", product_flops)
        self._wrap(summed_loss, "multiply_rows", "softmax by elmore", product_flops)
        self._wrap(PackedMatrix, "__init__", "packing (also in other parts)", lambda *_: 0)
        self._profile = profile(activities=[ProfilerActivity.CPU], with_flops=True)
        self._profile.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._profile.__exit__(*error)
        for owner, name, function in self._kept:
            setattr(owner, name, function)
        for event in self._profile.key_averages():
            self.seconds[event.key] += event.self_cpu_time_total / 1e6
            if event.flops and event.key in ("aten::mm", "aten::addmm", "aten::bmm"):
                self.flops += event.flops
                self.part_flops[event.key] += event.flops

    def _wrap(self, owner: Any, name: str, part: str, count: Any) -> None:
        function = getattr(owner, name)

        def timed(*arguments: Any, **settings: Any) -> Any:
            started = time.process_time()
            try:
                return function(*arguments, **settings)
            finally:
                self.seconds[part] += time.process_time() - started
                flops = count(*arguments)
                self.flops += flops
                self.part_flops[part] += flops

        setattr(owner, name, timed)

    def show(self, total: float) -> None:
        print("| part | ms | share of the step | GFLOP/s |")
        print("|---|---|---|---|")
        for part, seconds in sorted(self.seconds.items(), key=lambda item: -item[1])[:16]:
            speed = f"{self.part_flops[part] / seconds / 1e9:.0f}" if self.part_flops[part] else ""
            print(f"| {part} | {1000 * seconds:,.1f} | {seconds / total:.0%} | {speed} |")


def forward_flops(direction: Any) -> int:
    inputs = direction.inputs.shape[1]
    gates = 2 * 4 * direction.cell_dim * (inputs + direction.output_dim)
    projection = 2 * direction.cell_dim * direction.output_dim
    return direction.num_tokens * (gates + projection)


def product_flops(_kernel: Any, _matrix: Any, x: Any, bias: Any) -> int:
    return 2 * x.numel() * len(bias)


def backward_flops(direction: Any) -> int:
    return direction.num_tokens * 2 * 5 * direction.cell_dim * direction.output_dim


if __name__ == "__main__":
    main()
