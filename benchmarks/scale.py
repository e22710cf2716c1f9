"""Measure jobs over many files: workers against one process, Ray, memory, growth to 100 GB.

    python -m benchmarks.scale TEXT [--megabytes 5] [--ray-python PYTHON]

TEXT is any plain-text file; its beginning is divided into files of half a megabyte. Every run is a
command in a process of its own, with one thread per worker, one after another: run it on an idle
machine. With --ray-python, the interpreter of an environment that has Ray, the engine ray is
measured too, in a network namespace with loopback only. Prints Markdown.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import elmore
from benchmarks.machine import describe_machine

LOOPBACK = ("unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
FILE_BYTES = 1 << 19
SHARD_BYTES = 1 << 18
CORPUS_BYTES = 100e9
PLANNED_BYTES = 1 << 28


@dataclass(kw_only=True)
class Run:
    """One command."""

    name: str
    seconds: float
    report: dict[str, object]
    peak_bytes: dict[str, int] = field(default_factory=dict)  # of each process, by its role

    @property
    def tokens_per_second(self) -> float:
        return float(str(self.report["num_tokens"])) / self.seconds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale")
    parser.add_argument("text", type=Path)
    parser.add_argument("--megabytes", type=float, default=5)
    parser.add_argument("--ray-python", help="the interpreter of an environment with Ray")
    arguments = parser.parse_args()
    for name, value in describe_machine().items():
        print(f"- {name}: {value}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole, texts = write_texts(arguments.text, folder, int(arguments.megabytes * 1e6))
        runs = measure_runs(whole, texts, folder, arguments.ray_python)
        print_runs(runs)
        print_growth(texts, folder, runs)


def write_texts(text: Path, folder: Path, num_bytes: int) -> tuple[Path, Path]:
    """Write the beginning of a text as one file, and divided into several."""
    with text.open("rb") as file:
        data = file.read(num_bytes)
    data = data[: data.rfind(b"\n") + 1]
    whole, texts = folder / "whole.txt", folder / "texts"
    whole.write_bytes(data)
    texts.mkdir()
    start = 0
    while start < len(data):
        end = data.rfind(b"\n", start, start + FILE_BYTES) + 1 or len(data)
        (texts / f"{start:012d}.txt").write_bytes(data[start:end])
        start = end
    return whole, texts


def measure_runs(whole: Path, texts: Path, folder: Path, ray_python: str | None) -> list[Run]:
    """Run every command once; each embeds the same sentences."""

    def command(text: Path, out: str, *more: object) -> list[str]:
        return [
            *("-m", "elmore", "embed", str(text), "--pool", "mean", "--json"),
            *("--out", str(folder / out), *map(str, more)),
        ]

    def many(*more: object) -> tuple[object, ...]:
        return ("--shard-bytes", SHARD_BYTES, *more)

    python = [sys.executable]
    runs = [
        run("plain elmore embed, 1 thread", [*python, *command(whole, "one.parquet")]),
        run("local, 1 worker", [*python, *command(texts, "v1", *many("--workers", 1))]),
        run("local, 2 workers", [*python, *command(texts, "v2", *many("--workers", 2))]),
    ]
    if ray_python:
        options = many("--workers", 2, "--engine", "ray")
        runs.append(run("ray, 2 actors", [*LOOPBACK, ray_python, *command(texts, "v3", *options)]))
        options = many("--workers", 2)
        runs.append(
            run("local, 2 workers, same environment", [ray_python, *command(texts, "v4", *options)])
        )
    return runs


def run(name: str, command: list[str]) -> Run:
    """Run a command; sample the memory of its processes."""
    # One thread also for the plain command, which has no --threads.
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    peaks: dict[str, int] = {}
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=variables, text=True)
    sampler = threading.Thread(target=sample_memory, args=(process, peaks))
    sampler.start()
    output, _ = process.communicate()
    seconds = time.monotonic() - started
    sampler.join()
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed with status {process.returncode}")
    return Run(name=name, seconds=seconds, report=json.loads(output), peak_bytes=peaks)


def sample_memory(process: "subprocess.Popen[str]", peaks: dict[str, int]) -> None:
    """Keep the largest resident size of the first process and of its workers."""
    while process.poll() is None:
        listed = subprocess.run(
            ["ps", "-eo", "pid=,ppid=,rss=,args="], capture_output=True, text=True, check=False
        ).stdout
        for line in listed.splitlines():
            number, parent, kilobytes, arguments = line.split(maxsplit=3)
            if int(number) == process.pid:
                role = "driver"
            elif int(parent) == process.pid and "spawn_main" in arguments:
                role = "worker"
            elif "ray::MapWorker(" in arguments:
                role = "actor"
            else:
                continue
            peaks[role] = max(peaks.get(role, 0), int(kilobytes) * 1024)
        time.sleep(0.5)


def print_runs(runs: list[Run]) -> None:
    """Print the table of runs."""
    print("\n| command | seconds | tokens/s | relative to 1 worker | peak memory, MB |")
    print("|---|---:|---:|---:|---|")
    base = next(one for one in runs if one.name == "local, 1 worker")
    for one in runs:
        memory = ", ".join(f"{role} {size / 1e6:.0f}" for role, size in one.peak_bytes.items())
        ratio = one.tokens_per_second / base.tokens_per_second
        print(
            f"| {one.name} | {one.seconds:.1f} | {one.tokens_per_second:,.0f} | {ratio:.2f} | "
            f"{memory} |"
        )


def print_growth(texts: Path, folder: Path, runs: list[Run]) -> None:
    """Measure what the driver does per byte and per part, and compute 100 GB from it."""
    embedder = elmore.load()
    sizes = [path.stat().st_size for path in texts.iterdir()]
    # A large and a small plan, because planning also loads and describes the model.
    large = folder / "large.txt"
    data = b"".join(path.read_bytes() for path in sorted(texts.iterdir()))
    large.write_bytes(data * (1 + PLANNED_BYTES // len(data)))
    small_seconds = time_plan(embedder, next(texts.iterdir()), folder / "small")
    plan_rate = large.stat().st_size / (time_plan(embedder, large, folder / "plan") - small_seconds)
    done = elmore.plan_files(
        embedder, texts, folder / "v1", shard_bytes=SHARD_BYTES, layers="average", pool="mean"
    )
    started = time.monotonic()
    for _ in range(20):
        done.find_done()
    per_part = (time.monotonic() - started) / 20 / len(done.shards)
    base = next(one for one in runs if one.name == "local, 1 worker")
    plain = next(one for one in runs if one.name.startswith("plain"))
    tokens = float(str(base.report["num_tokens"]))
    num_shards = CORPUS_BYTES / (4 << 20)
    all_tokens = CORPUS_BYTES * tokens / sum(sizes)
    print(f"\nplanning: {plan_rate / 1e6:,.0f} MB/s; {per_part * 1e3:.2f} ms per finished part")
    print(f"overhead of a job: {base.seconds / plain.seconds - 1:+.1%} of the time of plain embed")
    print("\n| 100 GB of text | |\n|---|---:|")
    print(f"| tokens | {all_tokens / 1e9:,.1f} billion |")
    print(f"| core-hours | {all_tokens / base.tokens_per_second / 3600:,.0f} |")
    print(f"| parts of 4 MB of text | {num_shards:,.0f} |")
    print(f"| planning, once, in one process | {CORPUS_BYTES / plan_rate / 60:,.0f} min |")
    print(f"| checking all parts in a rerun | {num_shards * per_part:,.0f} s |")
    pooled = float(str(base.report["num_bytes"])) / tokens
    print(f"| bytes per token with --pool mean, with text | {pooled:,.0f} |")


def time_plan(embedder: elmore.Embedder, text: Path, out: Path) -> float:
    """Return the seconds that planning takes."""
    started = time.monotonic()
    elmore.plan_files(embedder, text, out)
    return time.monotonic() - started


if __name__ == "__main__":
    main()
