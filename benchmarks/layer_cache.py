"""Measure the size and speed of layers cached on disk, compared with computing them again.

    python -m benchmarks.layer_cache [--model MODEL] [--text TEXT] [--num-tokens 20000]

The default model is the one that comes with elmore; without a text, sentences are generated.
Batches are drawn at random, as in the epochs of a task, and are the same for every contestant:
computed live, and read from files in half and single precision. Contestants take turns, and medians
are reported. The time of writing includes opening an empty cache. The files are read soon after
they are written, so they come from the page cache if it is large enough. Prints Markdown.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch

from benchmarks.sentences import Sentences, load_sentences
from benchmarks.timing import Contestant, take_turns
from elmore.config import VECTORS, Precision
from elmore.embed.embedder import Embedder, load
from elmore.embed.layer_cache import LayerCache
from elmore.embed.layer_source import LayerSource, LiveLayers

LIVE = "live"


@dataclass(frozen=True, kw_only=True)
class Written:
    """Cache files of one precision."""

    precision: Precision
    seconds: float  # to write one file, the median
    num_bytes: int


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model")
    parser.add_argument("--text", type=Path)
    parser.add_argument("--num-tokens", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=32, help="sentences that a task reads at once")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    embedder = load(arguments.model)
    sentences = load_sentences(arguments.text, num_tokens=arguments.num_tokens)
    with tempfile.TemporaryDirectory() as name:
        print(f"{torch.get_num_threads()} threads; {count_tokens(sentences):,} tokens.\n")
        print_files(write_files(embedder, sentences, Path(name), arguments.repeats), sentences)
        print()
        batches = draw_batches(sentences, num_sentences=arguments.batch)
        sources = {LIVE: LiveLayers(embedder), **open_files(embedder, sentences, Path(name))}
        print_speeds(sources, batches, repeats=arguments.repeats)


def count_tokens(sentences: Sentences) -> int:
    return sum(len(sentence) for sentence in sentences)


def write_files(
    embedder: Embedder, sentences: Sentences, folder: Path, repeats: int
) -> list[Written]:
    """Write files of both precisions, in turns; the last ones are kept."""
    embedder.embed(sentences[:100], layers="all")  # warm up: start threads, fill the token cache
    seconds: dict[Precision, list[float]] = {each: [] for each in VECTORS}
    for _ in range(repeats):
        for precision, times in seconds.items():
            for path in (folder / precision).glob("*.layers"):
                path.unlink()
            started = time.perf_counter()
            open_file(embedder, sentences, folder, precision)
            times.append(time.perf_counter() - started)
    return [
        Written(
            precision=precision,
            seconds=median(times),
            num_bytes=sum(path.stat().st_size for path in (folder / precision).iterdir()),
        )
        for precision, times in seconds.items()
    ]


def open_file(
    embedder: Embedder, sentences: Sentences, folder: Path, precision: Precision
) -> LayerSource:
    return LayerCache(folder / precision).open(
        lambda: embedder,
        sentences,
        fingerprint=embedder.model.fingerprint(),
        weights=embedder.precision,
        precision=precision,
    )


def open_files(embedder: Embedder, sentences: Sentences, folder: Path) -> dict[str, LayerSource]:
    return {
        str(precision): open_file(embedder, sentences, folder, precision) for precision in VECTORS
    }


def draw_batches(sentences: Sentences, *, num_sentences: int) -> list[Sentences]:
    """Shuffle batches of similar length, as task training does."""
    draw = random.Random(0)
    ordered = sorted(draw.sample(sentences, len(sentences)), key=len)
    starts = list(range(0, len(ordered), num_sentences))
    draw.shuffle(starts)
    return [ordered[start : start + num_sentences] for start in starts]


def read_epoch(source: LayerSource, batches: Sequence[Sentences]) -> None:
    for batch in batches:
        source.find(batch)


def print_files(files: Sequence[Written], sentences: Sentences) -> None:
    num_tokens = count_tokens(sentences)
    print("| precision | bytes a token | tokens/s written |")
    print("|---|---|---|")
    for written in files:
        print(
            f"| {written.precision} | {written.num_bytes / num_tokens:,.0f} "
            f"| {num_tokens / written.seconds:,.0f} |",
            flush=True,
        )


def print_speeds(
    sources: dict[str, LayerSource], batches: Sequence[Sentences], *, repeats: int
) -> None:
    num_tokens = sum(count_tokens(batch) for batch in batches)
    timings = take_turns(
        [
            Contestant(name=name, run=lambda source=source: read_epoch(source, batches))
            for name, source in sources.items()
        ],
        repeats=repeats,
    )
    print("| layers | tokens/s | times live |")
    print("|---|---|---|")
    for name, timing in timings.items():
        ratio = timings[LIVE].median / timing.median
        print(f"| {name} | {num_tokens / timing.median:,.0f} | {ratio:.1f} |", flush=True)


if __name__ == "__main__":
    main()
