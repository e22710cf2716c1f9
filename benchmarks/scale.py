"""Measure jobs over many files: workers against one process, Ray, memory, growth to 100 GB.

    python -m benchmarks.scale TEXT [--megabytes 5]
    python -m benchmarks.scale TEXT [--megabytes 5] --ray-python PYTHON

TEXT is any plain-text file; its beginning is divided into files of half a megabyte. Every run is a
command in a process of its own, with one thread per worker, one after another: run it on an idle
machine. With --ray-python, the interpreter of an environment that has Ray, the engines ray (in a
network namespace with loopback only) and local are compared in that environment. Prints Markdown.

Two plain commands at once, counted as half of their time, show what two workers could reach at most
on this machine. A command that embeds nothing, because everything is done, shows what starting
costs. Memory is that
of the largest process of its kind, and in brackets the part of it that no other process shares.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import elmore
from benchmarks.machine import describe_machine

LOOPBACK = ("unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
FILE_BYTES = 1 << 19
SHARD_BYTES = 1 << 17
BASE = "local, 1 worker"
CORPUS_BYTES = 100e9
PLANNED_BYTES = 1 << 28


@dataclass(kw_only=True)
class Run:
    """One command."""

    name: str
    seconds: float
    report: dict[str, object]
    # Of the largest process of each role: all of its memory, and what it does not share.
    peak_bytes: dict[str, tuple[int, int]] = field(default_factory=dict)

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
        print(f"- text: {whole.stat().st_size / 1e6:.1f} MB")
        if arguments.ray_python:
            print_runs(measure_ray(texts, folder, arguments.ray_python))
        else:
            runs = measure_local(whole, texts, folder)
            print_runs(runs)
            print_start()
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


def measure_local(whole: Path, texts: Path, folder: Path) -> list[Run]:
    """Embed the same sentences with one process, one worker and two."""

    def many(out: str, workers: int) -> list[str]:
        return command(texts, folder / out, "--shard-bytes", SHARD_BYTES, "--workers", workers)

    python = sys.executable
    return [
        run("plain elmore embed, 1 thread", [python, *command(whole, folder / "one.parquet")]),
        run_twice(
            "two of them at once",
            [[python, *command(whole, folder / f"{name}.parquet")] for name in ("a", "b")],
        ),
        run(BASE, [python, *many("v1", 1)]),
        run("local, 2 workers", [python, *many("v2", 2)]),
        run("local, nothing to embed", [python, *many("v2", 2)]),
    ]


def measure_ray(texts: Path, folder: Path, python: str) -> list[Run]:
    """Embed the same sentences with two processes and two actors."""

    def many(out: str, engine: str) -> list[str]:
        options = ("--shard-bytes", SHARD_BYTES, "--workers", 2, "--engine", engine)
        return [python, *command(texts, folder / out, *options)]

    return [
        run("local, 2 workers", many("local", "local")),
        run("ray, 2 actors", [*LOOPBACK, *many("ray", "ray")]),
    ]


def command(text: Path, out: Path, *more: object) -> list[str]:
    """Return the arguments of Python that embed a text."""
    arguments = ("-m", "elmore", "embed", text, "--pool", "mean", "--json", "--out", out, *more)
    return [str(argument) for argument in arguments]


def run(name: str, command: list[str]) -> Run:
    """Run a command; sample the memory of its processes."""
    # One thread also for the plain command, which has no --threads.
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    peaks: dict[str, tuple[int, int]] = {}
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


def run_twice(name: str, commands: list[list[str]]) -> Run:
    """Run two commands at once, each of which does all the work: what this machine can give."""
    with ThreadPoolExecutor() as threads:
        one, other = threads.map(lambda command: run(name, command), commands)
    # Half of the time is the time for half of the work.
    return replace(one, seconds=max(one.seconds, other.seconds) / 2)


def sample_memory(process: "subprocess.Popen[str]", peaks: dict[str, tuple[int, int]]) -> None:
    """Keep the largest size of the first process and of its workers."""
    while process.poll() is None:
        for number in find_family(process.pid):
            with suppress(OSError, LookupError):  # it has ended
                arguments = Path(f"/proc/{number}/cmdline").read_bytes()
                if number == process.pid:
                    role = "driver"
                elif b"spawn_main" in arguments:
                    role = "worker"
                elif b"ray::MapWorker(" in arguments:
                    role = "actor"
                else:
                    continue
                peaks[role] = max(peaks.get(role, (0, 0)), read_memory(number))
        time.sleep(0.5)


def find_family(number: int) -> list[int]:
    """Return the numbers of a process and its descendants."""
    try:
        children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    except OSError:
        children = []
    return [number, *(other for child in children for other in find_family(int(child)))]


def read_memory(number: int | str) -> tuple[int, int]:
    """Return the bytes of a process, and those of them that no file backs."""
    lines = Path(f"/proc/{number}/status").read_text().splitlines()
    kilobytes = dict(line.split()[:2] for line in lines if line.startswith(("VmRSS", "RssAnon")))
    return int(kilobytes["VmRSS:"]) * 1024, int(kilobytes["RssAnon:"]) * 1024


def print_runs(runs: list[Run]) -> None:
    """Print the table of runs."""
    base = next((one for one in runs if one.name == BASE), runs[0])
    print(f"\n| command | seconds | tokens/s | relative to {base.name} | peak memory, MB |")
    print("|---|---:|---:|---:|---|")
    for one in runs:
        memory = ", ".join(
            f"{role} {size / 1e6:.0f} ({own / 1e6:.0f})"
            for role, (size, own) in one.peak_bytes.items()
        )
        speed, ratio = f"{one.tokens_per_second:,.0f}", f"{base.seconds / one.seconds:.2f}"
        if one.report.get("num_parts") == one.report.get("num_parts_before", 0):
            speed = ratio = ""
        print(f"| {one.name} | {one.seconds:.1f} | {speed} | {ratio} | {memory} |")


START = """
from benchmarks.scale import read_memory
for name in ("torch", "elmore", "pyarrow.parquet"):
    module = __import__(name)
    if name == "elmore":
        embedder, name = module.load(), "elmore and its English model"
    print(f"{name}: {read_memory('self')[0] / 1e6:.0f} MB")
"""


def print_start() -> None:
    """Print the memory of a process as it imports what a worker needs."""
    run = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True)
    print(f"\nmemory of a worker after importing: {', then '.join(run.stdout.splitlines())}")


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
    base = next(one for one in runs if one.name == BASE)
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
