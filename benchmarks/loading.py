"""Measure how long loading the original model takes, and how much memory.

    python -m benchmarks.loading [--repeats 5]

Each load runs in its own process. Memory is in addition to what the process used after importing
the library: the peak while loading, and what remains. Without arguments, weights are random.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import elmore
from benchmarks.models import CONFIGS
from elmore.weights.bilm_tf import write_bilm_tf
from elmore.weights.elmo_model import new_model

MAX_CPU_SECONDS = 1.5
MAX_PEAK = 1.2  # times what remains

MEASURE = """
import gc, json, resource, sys, time
from pathlib import Path
import numpy as np, torch

def status(name):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) / 1000

def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime

torch.randn(64, 64) @ torch.randn(64, 64)
{prepare}
gc.collect()
Path("/proc/self/clear_refs").write_text("5")  # resets the peak
before, started, started_cpu = status("VmRSS"), time.perf_counter(), cpu()
loaded = {load}
seconds, cpu_seconds = time.perf_counter() - started, cpu() - started_cpu
peak = status("VmHWM") - before
gc.collect()
print(json.dumps([seconds, cpu_seconds, peak, status("VmRSS") - before]))
"""


def measure_loading(weights: Path, *, repeats: int) -> str:
    """Return a table: elmore from HDF5 and its own folder, and AllenNLP if it is installed."""
    folder = weights.parent / "folder"
    if not folder.exists():
        elmore.load_model(weights).save_pretrained(folder)
    methods = {}
    for kind, path in (("HDF5", weights), ("folder", folder)):
        for precision in ("f32", "int8"):
            methods[f"elmore {precision}, {kind}"] = (
                "import elmore; from elmore.embed import embedder",
                f"elmore.load({str(path)!r}, precision={precision!r})",
            )
    if "allennlp" in sys.modules or find_spec("allennlp") is not None:
        options = weights.with_name("options.json")
        methods["AllenNLP, HDF5"] = (
            "from benchmarks import allennlp_elmo; allennlp_elmo._replace_packages(); "
            "import allennlp.modules.elmo",
            f"allennlp_elmo.load_elmo({str(options)!r}, {str(weights)!r})",
        )
    samples: dict[str, list[list[float]]] = {name: [] for name in methods}
    for _ in range(repeats):
        for name, (prepare, load) in methods.items():
            samples[name].append(run_apart(prepare, load))
    lines = [
        f"\nLoading the original model; medians of {repeats} processes. Targets: at most "
        f"{MAX_CPU_SECONDS} CPU-seconds, a peak of at most {MAX_PEAK} times what remains.\n",
        "| | seconds | CPU-seconds | peak, MB | remains, MB | peak / remains | met |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, found in samples.items():
        seconds, cpu, peak, remains = (median(column) for column in zip(*found, strict=True))
        is_met = cpu <= MAX_CPU_SECONDS and peak <= MAX_PEAK * remains
        met = "" if not name.startswith("elmore") else "yes" if is_met else "no"
        lines.append(
            f"| {name} | {seconds:.2f} | {cpu:.2f} | {peak:,.0f} | {remains:,.0f} "
            f"| {peak / remains:.2f} | {met} |"
        )
    return "\n".join(lines)


def run_apart(prepare: str, load: str) -> list[float]:
    program = MEASURE.replace("{prepare}", prepare).replace("{load}", load)
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, env=os.environ
    )
    return list(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder, "model.hdf5")
        write_bilm_tf(new_model(CONFIGS["original"], seed=0), weights)
        print(measure_loading(weights, repeats=arguments.repeats))


if __name__ == "__main__":
    main()
