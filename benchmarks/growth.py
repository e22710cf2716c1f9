"""Check that time grows linearly with the text and memory not at all: embed ever larger texts.

    python -m benchmarks.growth TEXT [--megabytes 1 3 10 30 100] [--plot growth.png]

TEXT is any plain-text file; its beginning of each size (or the whole, over and over) is embedded
through the command line by a tiny model, in a process of its own whose memory is sampled ten times
a second. Prints a Markdown table; the plot needs matplotlib.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from elmore.config import CharacterConfig, LSTMConfig, ModelConfig
from elmore.weights.elmo_model import ElmoModel, new_model


@dataclass(frozen=True, kw_only=True, slots=True)
class Growth:
    """Time and memory of embedding a text of one size, including the start of Python."""

    megabytes: float
    num_tokens: int
    seconds: float
    peak_memory_megabytes: float
    later_memory_megabytes: float
    """Median over the second half of the run, which shows whether memory keeps growing."""

    @property
    def tokens_per_second(self) -> float:
        return self.num_tokens / self.seconds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth")
    parser.add_argument("text", type=Path)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[1, 3, 10, 30, 100])
    parser.add_argument("--out-format", default="parquet", choices=["parquet", "h5", "npz"])
    parser.add_argument("--plot", type=Path, help="draw the table here, a .png")
    arguments = parser.parse_args()
    if arguments.plot:
        import_matplotlib()  # report a missing library now rather than after an hour
    print(
        "| text, MB | tokens | seconds | tokens/s | peak memory, MB | median of the last half, MB |"
    )
    print("|---|---|---|---|---|---|")
    measured = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_model().save_pretrained(folder / "model")
        for megabytes in sorted(arguments.megabytes):
            growth = measure(arguments.text, megabytes, folder, arguments.out_format)
            print(format_row(growth), flush=True)
            measured.append(growth)
    if arguments.plot:
        draw(measured, arguments.plot)


def make_model() -> ElmoModel:
    """Return a model so small that reading and writing take most of the time, not the LSTMs."""
    config = ModelConfig(
        lstm=LSTMConfig(num_layers=1, cell_dim=16, output_dim=8),
        characters=CharacterConfig(embedding_dim=4, filters=((3, 16),), num_highway_layers=0),
    )
    return new_model(config, seed=0)


def measure(source: Path, megabytes: int, folder: Path, out_format: str) -> Growth:
    text, out = folder / "text.txt", folder / f"vectors.{out_format}"
    num_bytes = copy_beginning(source, text, megabytes * 1_000_000)
    seconds, samples, peak, num_tokens = watch(text, folder / "model", out)
    out.unlink()
    return Growth(
        megabytes=num_bytes / 1e6,
        num_tokens=num_tokens,
        seconds=seconds,
        peak_memory_megabytes=peak,
        later_memory_megabytes=median(samples[len(samples) // 2 :]),
    )


def copy_beginning(source: Path, target: Path, num_bytes: int) -> int:
    """Copy whole lines, repeating the source if it is shorter."""
    if source.stat().st_size == 0:
        raise SystemExit(f"{source} is empty; give a file with text")
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


def watch(text: Path, model: Path, out: Path) -> tuple[float, list[float], float, int]:
    """Embed a file; return the seconds, the memory over time and at its peak in MB, the tokens."""
    command = [sys.executable, "-m", "elmore", "embed", text, "--model", model, "--out", out]
    command += ["--layers", "top", "--tokens-per-batch", "4096", "--json"]
    started = time.monotonic()
    process = subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
        },  # with products this small, threads only wait for each other
    )
    samples, peak = [0.0], 0.0
    while process.poll() is None:
        resident, peak_so_far = read_memory(process.pid)
        samples.append(resident or samples[-1])
        peak = max(peak, peak_so_far)
        time.sleep(0.1)
    seconds = time.monotonic() - started
    report = process.communicate()[0]
    if process.returncode != 0:
        raise SystemExit(f"elmore embed failed with status {process.returncode}")
    return seconds, samples, peak, json.loads(report)["num_tokens"]


def read_memory(pid: int) -> tuple[float, float]:
    """Return a process's memory now and at its peak, in MB; zeros when it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0, 0.0
    kilobytes = {
        name: float(value.split()[0]) * 1.024
        for name, _, value in (line.partition(":") for line in lines)
        if name in ("VmRSS", "VmHWM")
    }
    return kilobytes.get("VmRSS", 0.0) / 1000, kilobytes.get("VmHWM", 0.0) / 1000


def format_row(growth: Growth) -> str:
    return (
        f"| {growth.megabytes:.0f} | {growth.num_tokens:,} | {growth.seconds:.1f} "
        f"| {growth.tokens_per_second:,.0f} | {growth.peak_memory_megabytes:.0f} "
        f"| {growth.later_memory_megabytes:.0f} |"
    )


def import_matplotlib():
    try:
        import matplotlib as mpl  # noqa: PLC0415  only a plot needs it
    except ModuleNotFoundError:
        raise SystemExit("--plot needs matplotlib: pip install matplotlib") from None
    mpl.use("Agg")
    return mpl


STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.titlelocation": "left",
    "axes.titlepad": 14,
    "axes.titlesize": 12,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "font.size": 10.5,
}


def draw(measured: list[Growth], path: Path) -> None:
    """Draw time with the line of proportional growth, and memory beside it."""
    mpl = import_matplotlib()
    from matplotlib import pyplot  # noqa: PLC0415  only a plot needs it

    with mpl.rc_context(STYLE):
        figure, (left, right) = pyplot.subplots(ncols=2, figsize=(11, 4.6), layout="constrained")
        draw_time(left, measured)
        draw_memory(right, measured)
        figure.get_layout_engine().set(wspace=0.08)
        figure.savefig(path, dpi=160)
        pyplot.close(figure)


def draw_time(axes, measured: list[Growth]) -> None:
    tokens = [growth.num_tokens for growth in measured]
    last = measured[-1]
    ends = widen(tokens)
    axes.plot(
        ends,
        [end / last.tokens_per_second for end in ends],
        color="#999999",
        linestyle=(0, (5, 4)),
        linewidth=1.4,
        label=f"proportional: {last.tokens_per_second:,.0f} tokens a second",
    )
    seconds = [growth.seconds for growth in measured]
    axes.plot(tokens, seconds, "o-", color="#1f5fa8", markersize=7, label="measured")
    for growth in measured:
        axes.annotate(
            f"{growth.megabytes:.0f} MB",
            (growth.num_tokens, growth.seconds),
            xytext=(-5, 8),
            textcoords="offset points",
            ha="right",
            color="#1f5fa8",
        )
    axes.set(xscale="log", yscale="log", xlabel="tokens", ylabel="seconds, start included")
    axes.set_title("Time against length of text")
    axes.set_xlim(ends)
    name_ticks(axes.xaxis)
    name_ticks(axes.yaxis)
    axes.legend(frameon=False, loc="lower right")


def draw_memory(axes, measured: list[Growth]) -> None:
    tokens = [growth.num_tokens for growth in measured]
    peak = [growth.peak_memory_megabytes for growth in measured]
    later = [growth.later_memory_megabytes for growth in measured]
    axes.plot(tokens, peak, "o-", color="#b3541e", markersize=7, label="peak")
    axes.plot(tokens, later, "o-", color="#e0a878", markersize=5, label="median of the last half")
    axes.set(xscale="log", xlabel="tokens", ylabel="memory, MB", ylim=(0, max(peak) * 1.25))
    axes.set_title("Memory against length of text")
    axes.set_xlim(widen(tokens))
    name_ticks(axes.xaxis)
    axes.legend(frameon=False, loc="lower right")


def widen(tokens: list[int]) -> tuple[float, float]:
    """Return the start and end of both panels."""
    return tokens[0] * 0.5, tokens[-1] * 1.6


def name_ticks(axis) -> None:
    """Label ticks 200k and 2M instead of powers of ten, and some numbers in between."""
    from matplotlib import ticker  # noqa: PLC0415  only a plot needs it

    low, high = axis.get_view_interval()
    subs = (1.0, 2.0, 5.0) if high / low < 100 else (1.0, 3.0)
    axis.set_major_locator(ticker.LogLocator(subs=subs))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: shorten(value)))
    axis.set_minor_locator(ticker.NullLocator())


def shorten(number: float) -> str:
    """Abbreviate a round number.

    >>> [shorten(n) for n in (5, 200_000, 2e6)]
    ['5', '200k', '2M']
    """
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:g}{letter}"
    return f"{number:g}"


if __name__ == "__main__":
    main()
