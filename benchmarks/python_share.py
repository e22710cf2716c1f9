"""Measure how much CPU time of embedding a corpus is the network's, and where the rest goes.

    python benchmarks/python_share.py TEXT [--megabytes 1] [--model FOLDER] [--out-format h5]

Reads, embeds and stores the beginning of a plain-text file as `elmore embed TEXT --out` does, with
a clock at each stage, in each thread. Without a model: random weights, 2 layers of 1024 cells,
projection 128; `--cells 8` makes a network so small that the other stages show. Prints a Markdown
table.
"""

import argparse
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from elmore.config import CharacterConfig, LSTMConfig, ModelConfig
from elmore.embed import job
from elmore.embed.embedder import Embedder
from elmore.text.files import TextForm, read_sentences
from elmore.weights.elmo_model import ElmoModel, new_model
from elmore.weights.loading import load_model

OTHER_THREADS = "LSTMs, other threads"  # the only others that compute, besides the writer's
NETWORK = ("token encoder", "LSTMs", OTHER_THREADS)


class _Running(threading.local):
    """The stages that run in a thread, each within the one before."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.since = time.thread_time()


class StageClock:
    """Attributes the CPU time of each thread to the innermost stage that it runs.

    Time outside of all stages is attributed to `outside`; by default, it does not count.
    """

    def __init__(self, outside: str | None = None) -> None:
        self._outside = [] if outside is None else [outside]
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._running = _Running()
        self._lock = threading.Lock()

    def wrap(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, timed."""

        def timed(*arguments: Any, **settings: Any) -> Any:
            self._charge()
            self._running.stages.append(stage)
            try:
                return function(*arguments, **settings)
            finally:
                self._charge()
                self._running.stages.pop()

        return timed

    def _charge(self) -> None:
        now = time.thread_time()
        for stage in (self._running.stages or self._outside)[-1:]:
            with self._lock:
                self.seconds[stage] += now - self._running.since
        self._running.since = now


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("text", type=Path)
    parser.add_argument("--megabytes", type=float, default=1.0)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--cells", type=int, default=1024)
    parser.add_argument("--out-format", default="h5")
    parser.add_argument("--tokens-per-batch", type=int, default=2048)
    arguments = parser.parse_args()
    model = load_model(arguments.model) if arguments.model else make_model(arguments.cells)
    embedder = Embedder(model, tokens_per_batch=arguments.tokens_per_batch)
    embedder.embed([["warm", "up"]])
    embedder.clear_cache()
    with tempfile.TemporaryDirectory() as name:
        text = Path(name, "text.txt")
        copy_beginning(arguments.text, text, num_bytes=int(arguments.megabytes * 1e6))
        out = Path(name, f"vectors.{arguments.out_format}")
        started = time.process_time()
        clock, report = run(embedder, text, out)
        clock.seconds[OTHER_THREADS] = time.process_time() - started - sum(clock.seconds.values())
    show(clock, num_tokens=report.num_tokens)


def make_model(num_cells: int) -> ElmoModel:
    config = ModelConfig(
        lstm=LSTMConfig(num_layers=2, cell_dim=num_cells, output_dim=min(num_cells, 128)),
        characters=CharacterConfig(
            filters=tuple((width, max(num_cells >> (8 - width), 1)) for width in range(1, 8)),
            num_highway_layers=1,
        ),
    )
    return new_model(config, seed=0)


def copy_beginning(source: Path, target: Path, *, num_bytes: int) -> None:
    with source.open("rb") as file:
        target.write_bytes(file.read(num_bytes).rpartition(b"\n")[0])


def run(embedder: Embedder, text: Path, out: Path) -> tuple[StageClock, job.JobReport]:
    """Embed a file with a clock at every stage."""
    clock = StageClock("other")
    bilm, cache = embedder._engine.reader, embedder._engine.cache
    bilm.contextualize = clock.wrap("LSTMs", bilm.contextualize)  # type: ignore[method-assign]
    cache._speller.spell = clock.wrap("spelling", cache._speller.spell)  # type: ignore[method-assign]
    cache._encode = clock.wrap("token encoder", cache._encode)  # type: ignore[method-assign]
    cache.find = clock.wrap("token cache", cache.find)  # type: ignore[method-assign]
    windows = embedder.windows
    embedder.windows = lambda *a, **s: timed_items(clock, "batches", windows(*a, **s))  # type: ignore[method-assign]
    job.ChunkFolder.add = clock.wrap("parts of the file", job.ChunkFolder.add)  # type: ignore[method-assign]
    job.write_vector_file = clock.wrap("the file", job.write_vector_file)
    sentences = read_sentences(text, form=TextForm.RAW)
    embed = clock.wrap("other", job.embed_to_file)
    return clock, embed(embedder, timed_items(clock, "reading", sentences), out)


def timed_items(clock: StageClock, stage: str, items: Iterator[Any]) -> Iterator[Any]:
    advance = clock.wrap(stage, lambda: next(items, None))
    while (item := advance()) is not None:
        yield item


def show(clock: StageClock, *, num_tokens: int) -> None:
    total = sum(clock.seconds.values())
    print(f"{num_tokens:,} tokens, {num_tokens / total:,.0f} per CPU-second\n")
    print("| stage | CPU-seconds | microseconds per token | share |")
    print("|---|---|---|---|")
    rows = sorted(clock.seconds.items(), key=lambda entry: -entry[1])
    network = sum(clock.seconds[stage] for stage in NETWORK)
    for stage, seconds in [*rows, ("all but the network", total - network)]:
        microseconds = 1e6 * seconds / num_tokens
        print(f"| {stage} | {seconds:.3f} | {microseconds:.2f} | {seconds / total:.1%} |")


if __name__ == "__main__":
    main()
