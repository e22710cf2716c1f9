"""Compare elmore's orthogonalization of Muon's updates with that of torch.optim.Muon.

    python -m benchmarks.orthogonalization [--repeats 7]

For the matrices of the English model: CPU time on one thread, alternating, as medians, and how far
the singular values of the result are from 1. The random gradients have singular values that fall by
a factor of 1,000. Prints a Markdown table.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.optim._muon import _zeropower_via_newtonschulz

from elmore.lm.muon import orthogonalize

SHAPES = ((2048, 256), (256, 512), (512, 512))


def orthogonalize_by_torch(matrix: Tensor) -> Tensor:
    """Return what torch.optim.Muon computes with its default settings, in bf16."""
    return _zeropower_via_newtonschulz(matrix, (3.4445, -4.7750, 2.0315), 5, 1e-7).float()


WAYS: dict[str, Callable[[Tensor], Tensor]] = {
    "elmore": orthogonalize,
    "torch.optim.Muon": orthogonalize_by_torch,
}


def make_gradient(rows: int, columns: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    side = min(rows, columns)
    left, _ = torch.linalg.qr(torch.randn(rows, side, generator=generator))
    right, _ = torch.linalg.qr(torch.randn(columns, side, generator=generator))
    return left * torch.logspace(0, -3, side) @ right.T


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| matrix | way | ms | smallest singular value | largest |")
    print("|---|---|---:|---:|---:|")
    for shape in SHAPES:
        gradient = make_gradient(*shape)
        seconds: dict[str, list[float]] = {name: [] for name in WAYS}
        for _ in range(arguments.repeats):
            for name, way in WAYS.items():
                started = time.process_time()
                way(gradient)
                seconds[name].append(time.process_time() - started)
        for name, way in WAYS.items():
            values = torch.linalg.svdvals(way(gradient))
            milliseconds = 1000 * statistics.median(seconds[name])
            print(
                f"| {shape[0]} x {shape[1]} | {name} | {milliseconds:.1f} "
                f"| {values.min():.3f} | {values.max():.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
