"""Measure what reading text and writing vector files add to the time of the network.

    python -m benchmarks.job_overhead TEXT [--megabytes 1.5] [--repeats 3] [--before SRC]

Embeds the beginning of a plain-text file with the English model, into each format, and once without
reading and writing ("network"). Every run is a process of its own; formats take turns. With
--before, the `src` folder of another version of elmore is measured in the same turns. Prints a
Markdown table of medians. If other programs use the cores, only the shares of CPU-seconds count.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import elmore
from benchmarks.python_share import copy_beginning

FORMATS = ("parquet", "h5", "npz")
NETWORK = "network"
MAX_SHARE = 0.08
MIN_SPEEDUP = 1.2

MEASURE = """
import json, sys, time
from pathlib import Path
import elmore
from elmore.text.files import TextForm, read_sentences

text, kind, out = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
embedder = elmore.load()
embedder.embed([["warm", "up"]])
embedder.clear_cache()
sentences = list(read_sentences(text, form=TextForm.RAW)) if kind == "network" else None
started, started_cpu = time.perf_counter(), time.process_time()
if sentences is not None:
    for _ in embedder.windows(sentences):
        pass
else:
    elmore.embed_to_file(embedder, text, out, form="raw")
print(json.dumps([time.perf_counter() - started, time.process_time() - started_cpu]))
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("text", type=Path)
    parser.add_argument("--megabytes", type=float, default=1.5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--before", type=Path, help="src of another version of elmore")
    arguments = parser.parse_args()
    versions = {"now": Path(elmore.__file__).parents[1]}
    if arguments.before:
        versions["before"] = arguments.before
    runs = [(version, kind) for kind in (NETWORK, *FORMATS) for version in versions]
    samples: dict[tuple[str, str], list[list[float]]] = {run: [] for run in runs}
    with tempfile.TemporaryDirectory() as name:
        text = Path(name, "text.txt")
        copy_beginning(arguments.text, text, num_bytes=int(arguments.megabytes * 1e6))
        for _ in range(arguments.repeats):
            for version, kind in runs:
                out = Path(name, f"vectors.{kind}")
                samples[version, kind].append(measure(versions[version], text, kind, out))
                out.unlink(missing_ok=True)
    show(
        {
            run: [median(column) for column in zip(*found, strict=True)]
            for run, found in samples.items()
        }
    )


def measure(source: Path, text: Path, kind: str, out: Path) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, text, kind, out],
        env={**os.environ, "PYTHONPATH": str(source)},
        check=True,
        capture_output=True,
        text=True,
    )
    return list(json.loads(done.stdout))


def show(medians: dict[tuple[str, str], list[float]]) -> None:
    print("| version | output | seconds | CPU-seconds | outside the network | met (8 %) ", end="")
    print("| of CPU-seconds | times as fast as before | met (1.2) |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (version, kind), (seconds, cpu) in medians.items():
        network_seconds, network_cpu = medians[version, NETWORK]
        share = 1 - network_seconds / seconds
        before = medians.get(("before", kind))
        cells = [version, kind, f"{seconds:.2f}", f"{cpu:.2f}", *[""] * 5]
        if kind != NETWORK:
            cells[4], cells[6] = f"{share:.0%}", f"{1 - network_cpu / cpu:.0%}"
        if version == "now" and kind != NETWORK:
            cells[5] = "yes" if share <= MAX_SHARE else "no"
            if before:
                speedup = before[0] / seconds
                cells[7:] = [f"{speedup:.2f}", "yes" if speedup >= MIN_SPEEDUP else "no"]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
