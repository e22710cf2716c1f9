"""Describe the machine, and measure its peak speed."""

import os
import time
from pathlib import Path

import torch

from elmore.config import Precision
from elmore.kernels.library import describe_kernel, find_kernel
from elmore.kernels.tokens import PackedLinear

_EXTENSIONS = ("avx", "avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni", "avx_vnni", "amx_")
_SIDE = 2048


def describe_machine() -> dict[str, str]:
    """Return what a reader of the table needs to know."""
    name, flags = read_cpu(Path("/proc/cpuinfo"))
    found = [flag for flag in flags if flag.startswith(_EXTENSIONS[-1]) or flag in _EXTENSIONS]
    return {
        "CPU": name,
        "vector extensions": " ".join(found) or "unknown",
        "cores": str(os.cpu_count()),
        "torch": f"{torch.__version__}, {torch.get_num_threads()} threads, "
        f"{torch.backends.cpu.get_cpu_capability()}",
        "elmore's engine": describe_kernel(),
    }


def read_cpu(path: Path) -> tuple[str, list[str]]:
    """Return the name and flags of the first CPU."""
    if not path.exists():
        return "unknown", []
    values: dict[str, str] = {}
    for line in path.read_text().splitlines():
        key, _, value = line.partition(":")
        values.setdefault(key.strip(), value.strip())
    return values.get("model name", "unknown"), values.get("flags", "").split()


def native_gemm_gflops() -> float | None:
    """Return the speed of elmore's own f32 product at 2048 x 2048 x 2048, if it has one."""
    kernel = find_kernel()
    if kernel is None:
        return None
    weight, rows = torch.randn(_SIDE, _SIDE), torch.randn(_SIDE, _SIDE)
    layer = PackedLinear(kernel, weight, torch.zeros(_SIDE), precision=Precision.F32)
    started = time.perf_counter()
    layer.apply(rows)
    return 2 * _SIDE**3 / (time.perf_counter() - started) / 1e9


class GemmLimit:
    """The fastest large f32 product measured in this run; measured repeatedly."""

    def __init__(self) -> None:
        self._left = torch.randn(_SIDE, _SIDE)
        self._right = torch.randn(_SIDE, _SIDE)
        self.best: dict[str, float] = {}

    @property
    def gflops(self) -> float:
        """The limit."""
        return max(self.best.values())

    def look(self) -> None:
        """Measure each product once."""
        num_threads = torch.get_num_threads()
        for threads in sorted({num_threads, 1}):
            name = "torch, 1 thread" if threads == 1 else f"torch, {threads} threads"
            self._keep(name, self._torch_gflops(threads))
        torch.set_num_threads(num_threads)
        native = native_gemm_gflops()
        if native is not None:
            self._keep("elmore's own", native)

    def _keep(self, name: str, gflops: float) -> None:
        self.best[name] = max(gflops, self.best.get(name, 0.0))

    def _torch_gflops(self, threads: int) -> float:
        torch.set_num_threads(threads)
        started = time.perf_counter()
        self._left @ self._right
        return 2 * _SIDE**3 / (time.perf_counter() - started) / 1e9
