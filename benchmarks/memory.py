"""Does memory stay flat while a corpus is embedded? Run `elmore embed` on ever more text, watch it.

    python benchmarks/memory.py TEXT [--megabytes 1 10 100] [--out-format parquet]

TEXT is any plain-text file; its beginning of each size is embedded by a tiny model, in a process
of its own whose memory is sampled ten times a second. Prints a Markdown table.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from elmore.config import CharacterConfig, LSTMConfig, ModelConfig
from elmore.weights.elmo_model import new_model

PAGE_BYTES = 4096


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("text", type=Path)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--out-format", default="parquet")
    arguments = parser.parse_args()
    print("| text, MB | tokens | seconds | peak memory, MB | median of the last half, MB |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_model().save_pretrained(folder / "model")
        for megabytes in arguments.megabytes:
            text = folder / "text.txt"
            num_bytes = copy_beginning(arguments.text, text, megabytes * 1_000_000)
            out = folder / f"vectors.{arguments.out_format}"
            seconds, samples, tokens = watch(text, folder / "model", out)
            later = sorted(samples[len(samples) // 2 :])
            print(
                f"| {num_bytes / 1e6:.0f} | {tokens} | {seconds:.0f} | {max(samples):.0f} "
                f"| {later[len(later) // 2]:.0f} |",
                flush=True,
            )
            out.unlink()


def make_model():
    """Small enough that reading and writing, not the LSTMs, take the time."""
    config = ModelConfig(
        lstm=LSTMConfig(num_layers=1, cell_dim=16, output_dim=8),
        characters=CharacterConfig(embedding_dim=4, filters=((3, 16),), num_highway_layers=0),
    )
    return new_model(config, seed=0)


def copy_beginning(source: Path, target: Path, num_bytes: int) -> int:
    """Copy whole lines, over and over if the source is shorter."""
    written = 0
    with target.open("wb") as out:
        while written < num_bytes:
            with source.open("rb") as file:
                for line in file:
                    out.write(line)
                    written += len(line)
                    if written >= num_bytes:
                        break
    return written


def watch(text: Path, model: Path, out: Path) -> tuple[float, list[float], str]:
    """Embed a file; return the time, the resident memory over time in MB, and the report."""
    command = [sys.executable, "-m", "elmore", "embed", text, "--model", model, "--out", out]
    command += ["--layers", "top", "--tokens-per-batch", "4096", "--json"]
    started = time.monotonic()
    process = subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # products this small only wait for each other
    )
    samples = [0.0]
    while process.poll() is None:
        samples.append(resident_megabytes(process.pid) or samples[-1])
        time.sleep(0.1)
    report = process.communicate()[0]
    assert process.returncode == 0
    num_tokens = report.split('"num_tokens": ')[1].split(",")[0]
    return time.monotonic() - started, samples, f"{int(num_tokens):,}"


def resident_megabytes(pid: int) -> float | None:
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except FileNotFoundError:
        return None
    return int(fields[1]) * PAGE_BYTES / 1e6 if len(fields) > 1 else None


if __name__ == "__main__":
    main()
