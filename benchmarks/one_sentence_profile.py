"""Show where the time of embedding one sentence goes, in microseconds.

    python -m benchmarks.one_sentence_profile [--models english small] [--text FILE] [--repeats 200]

Embeds a sentence of 25 tokens, with cached token vectors (warm) and without (cold), on one thread
and on all. Prints a Markdown table of medians. "other" is everything in `Embedder.embed` outside
the listed parts. `original` and `small` have random weights. With --keep-f32, weights that f16
holds exactly, as those of the English model, are packed in f32 nevertheless.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

import elmore
from benchmarks.models import CONFIGS
from benchmarks.sentences import choose_window, load_sentences
from elmore.embed.layer_choice import LayerChoice
from elmore.kernels import reading, tokens
from elmore.kernels.reading import PackedReader
from elmore.model.packed_bilm import PackedBiLM
from elmore.read.token_cache import TokenCache
from elmore.weights.elmo_model import new_model

ENGLISH = "english"
TOTAL, OTHER = "in all", "other"
# Outer parts before those that they contain.
PARTS = {
    "token vectors": (TokenCache, "find"),
    "of these: new ones": (PackedBiLM, "encode"),
    "LSTMs": (PackedReader, "read"),
    "average of layers": (LayerChoice, "cut"),
}
INNER = "of these: new ones"
PAUSE_SECONDS = 0.005  # as between a user's sentences


class Stopwatch:
    """Times functions while it is entered."""

    def __enter__(self) -> "Stopwatch":
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._kept = [(owner, name, getattr(owner, name)) for owner, name in PARTS.values()]
        for part, (owner, name) in PARTS.items():
            setattr(owner, name, self._time(part, getattr(owner, name)))
        return self

    def __exit__(self, *error: object) -> None:
        for owner, name, function in self._kept:
            setattr(owner, name, function)

    def _time(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **settings: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*arguments, **settings)
            finally:
                self.seconds[part] += time.perf_counter() - started

        return timed


def profile_sentence(
    embedder: elmore.Embedder, sentence: list[str], *, repeats: int, is_cold: bool
) -> dict[str, float]:
    """Return the median seconds of each part, and in all."""
    samples: defaultdict[str, list[float]] = defaultdict(list)
    embedder.embed([sentence])
    for _ in range(repeats):
        if is_cold:
            embedder.clear_cache()
        time.sleep(PAUSE_SECONDS)
        with Stopwatch() as watch:
            started = time.perf_counter()
            embedder.embed([sentence])
            total = time.perf_counter() - started
        outer = sum(seconds for part, seconds in watch.seconds.items() if part != INNER)
        for part in PARTS:
            samples[part].append(watch.seconds[part])
        samples[OTHER].append(total - outer)
        samples[TOTAL].append(total)
    return {part: median(found) for part, found in samples.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--models", nargs="+", choices=[ENGLISH, *CONFIGS], default=[ENGLISH, "small"]
    )
    parser.add_argument("--text", type=Path, help="plain text; default: generated words")
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--keep-f32", action="store_true", help="do not pack weights in f16")
    arguments = parser.parse_args()
    if arguments.keep_f32:
        for module in (reading, tokens):
            module.narrow = lambda precision, *_: precision
    sentences = load_sentences(arguments.text, num_tokens=20_000)
    sentence = choose_window(sentences, num_sentences=1, mean_tokens=25)[0]
    columns = [*PARTS, OTHER, TOTAL]
    print(f"| model | tokens | threads | {' | '.join(f'{name}, µs' for name in columns)} |")
    print("|" + "---|" * (3 + len(columns)))
    threads = torch.get_num_threads()
    for name in arguments.models:
        embedder = load_embedder(name)
        for num_threads in sorted({1, threads}):
            torch.set_num_threads(num_threads)
            for is_cold in (False, True):
                found = profile_sentence(
                    embedder, sentence, repeats=arguments.repeats, is_cold=is_cold
                )
                cells = [f"{1e6 * found[column]:,.0f}" for column in columns]
                kind = "cold" if is_cold else "warm"
                print(f"| {name} | {kind} | {num_threads} | {' | '.join(cells)} |", flush=True)


def load_embedder(name: str) -> elmore.Embedder:
    if name == ENGLISH:
        return elmore.load()
    return elmore.Embedder(new_model(CONFIGS[name], seed=0))


if __name__ == "__main__":
    main()
