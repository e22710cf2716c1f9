"""Measure elmore beside the programs that it is compared with, running their own code.

    python -m benchmarks.real_peers --text FILE [--cases corpus sentence ...] [--repeats 9]

Makes an environment from the package index (benchmarks/peer_environment.py; about a gigabyte) with
AllenNLP 0.9.0, whose vectors must agree with elmore's to 1e-5, and with all-MiniLM-L6-v2 for torch
and ONNX Runtime; with --tensorflow also simple_elmo, which runs bilm-tf's graph, for one sentence
of `small`. All methods of a case run in turns in one process with the same number of threads.
Weights of `original` and `small` are random; the third model is the English one that comes with
elmore. Prints Markdown tables: medians, their ratios, and the ratios that were aimed at.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

import elmore
from benchmarks.busy_core import BusyCore
from benchmarks.loading import measure_loading
from benchmarks.machine import describe_machine
from benchmarks.models import CONFIGS
from benchmarks.peer_environment import is_inside, run_inside
from benchmarks.sentences import Sentences, choose_window, load_sentences, take_tokens
from benchmarks.timing import Contestant, take_turns
from elmore.weights.bilm_tf import write_bilm_tf
from elmore.weights.elmo_model import new_model

ALLENNLP, BILM_TF = "AllenNLP", "simple_elmo (bilm-tf)"
MINILM, MINILM_INT8 = "MiniLM, ONNX Runtime", "MiniLM, ONNX Runtime int8"
LARGEST_DIFFERENCE = 1e-5
# Thread pools of torch and ONNX Runtime keep their cores busy for a while after a call, which would
# slow down the next contestant.
QUIET_SECONDS = 0.1

COLUMNS = (
    *("case", "method", "tokens", "time, ms", "CPU, ms", "tokens/s"),
    *("compared with", "times as fast", "by CPU", "target", "met"),
)

# (case, elmore's row, compared with): the other's time divided by elmore's.
WANTED = {
    ("sentence, small", "elmore f32, cold", ALLENNLP): 4.0,
    ("sentence, original", "elmore f32, cold", ALLENNLP): 6.0,
    ("sentence, English", "elmore f32, warm", MINILM): 1.25,
    ("sentence, English", "elmore int8, warm", MINILM): 2.0,
    ("busy core, English", "elmore f32, one core busy", "elmore f32, idle"): 1 / 1.5,
    ("busy core, English", "elmore int8, one core busy", "elmore int8, idle"): 1 / 1.5,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """What all cases need."""

    sentences: Sentences
    folder: Path  # for weights; emptied at the end
    repeats: int
    original_tokens: int
    small_tokens: int
    with_tensorflow: bool

    def one_sentence(self) -> Sentences:
        """Return a sentence of 25 tokens."""
        return choose_window(self.sentences, num_sentences=1, mean_tokens=25)

    def weights(self, name: str) -> Path:
        """Return bilm-tf weights of a random model, written on first use."""
        path = self.folder / name / "model.hdf5"
        if not path.exists():
            path.parent.mkdir()
            write_bilm_tf(new_model(CONFIGS[name], seed=0), path)
        return path


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A line of the table."""

    case: str
    method: str
    num_tokens: int
    seconds: float
    cpu_seconds: float


def main() -> None:
    arguments = parse_arguments()
    if not is_inside():
        status = run_inside(
            "benchmarks.real_peers", sys.argv[1:], with_tensorflow=arguments.tensorflow
        )
        sys.exit(status)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(
            sentences=load_sentences(arguments.text, num_tokens=20_000),
            folder=Path(folder),
            repeats=arguments.repeats,
            original_tokens=arguments.original_tokens,
            small_tokens=arguments.small_tokens,
            with_tensorflow=arguments.tensorflow,
        )
        for name, fact in {**describe_machine(), "load": f"{os.getloadavg()[0]:.1f}"}.items():
            print(f"- {name}: {fact}")
        rows = [row for name in arguments.cases if name in CASES for row in CASES[name](bench)]
        print_rows(rows)
        if "loading" in arguments.cases:
            print(measure_loading(bench.weights("original"), repeats=min(3, arguments.repeats)))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_peers")
    parser.add_argument("--text", type=Path, help="plain text; default: generated words")
    cases = [*CASES, "loading"]
    parser.add_argument("--cases", nargs="+", choices=cases, default=cases)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--original-tokens", type=int, default=2_000)
    parser.add_argument("--small-tokens", type=int, default=3_000)
    parser.add_argument("--tensorflow", action="store_true", help="also measure simple_elmo")
    return parser.parse_args()


def corpus(bench: Bench) -> Iterator[Row]:
    """`original` in text order and `small` sorted by length, no token seen before."""
    for name, num_tokens in (("original", bench.original_tokens), ("small", bench.small_tokens)):
        sentences = take_tokens(iter(bench.sentences), num_tokens=num_tokens)
        if name == "small":
            sentences = sorted(sentences, key=len)
        yield from race(
            bench,
            f"corpus, {name}",
            sentences,
            elmo_contestants(bench, name, sentences),
            repeats=max(3, bench.repeats // 3),
        )


def sentence(bench: Bench) -> Iterator[Row]:
    """One sentence of 25 tokens."""
    sentences = bench.one_sentence()
    for name in ("original", "small"):
        contestants = elmo_contestants(bench, name, sentences)
        yield from race(bench, f"sentence, {name}", sentences, contestants)
    contestants = [*english_contestants(sentences), *minilm_contestants(bench, sentences)]
    yield from race(bench, "sentence, English", sentences, contestants, repeats=10 * bench.repeats)


def busy_core(bench: Bench) -> Iterator[Row]:
    """One sentence while another process uses one core."""
    sentences = bench.one_sentence()
    with BusyCore() as core:
        contestants = [
            Contestant(
                name=f"{contestant.name.partition(',')[0]}, {name}",
                run=contestant.run,
                prepare=prepare,
            )
            for contestant in english_contestants(sentences)
            if contestant.name.endswith("warm")
            for name, prepare in (("idle", core.pause), ("one core busy", core.resume))
        ]
        contestants += [
            Contestant(name=f"{MINILM}, {name}", run=contestant.run, prepare=prepare)
            for contestant in minilm_contestants(bench, sentences)
            if contestant.name == MINILM
            for name, prepare in (("idle", core.pause), ("one core busy", core.resume))
        ]
        yield from race(
            bench, "busy core, English", sentences, contestants, repeats=10 * bench.repeats
        )


CASES: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "corpus": corpus,
    "sentence": sentence,
    "busy-core": busy_core,
}


def elmo_contestants(bench: Bench, name: str, sentences: Sentences) -> list[Contestant]:
    """Return the same model in elmore, AllenNLP and, if wanted, bilm-tf's graph."""
    from benchmarks import allennlp_elmo  # noqa: PLC0415  in the other environment

    weights = bench.weights(name)
    options = weights.with_name("options.json")
    module = allennlp_elmo.load_elmo(options, weights)
    contestants = [Contestant(name=ALLENNLP, run=partial(allennlp_elmo.embed, module, sentences))]
    for precision in ("f32", "int8"):
        embedder = elmore.load(weights, precision=precision)
        if precision == "f32":
            found = embedder.embed(sentences)
            theirs = allennlp_elmo.embed(module, sentences)
            check_equal(name, found, [vectors.numpy() for vectors in theirs])
        contestants.append(
            Contestant(
                name=f"elmore {precision}, cold",
                prepare=embedder._engine.cache.clear,
                run=partial(embedder.embed, sentences),
            )
        )
    # It builds a session and reads the weights in every call, which takes minutes for `original`.
    if bench.with_tensorflow and name == "small" and len(sentences) == 1:
        from benchmarks.simple_elmo_model import SimpleElmo  # noqa: PLC0415

        model = SimpleElmo(weights.parent)
        contestants.append(Contestant(name=BILM_TF, run=partial(model.embed, sentences)))
    return contestants


def check_equal(name: str, ours: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    """Stop unless AllenNLP's vectors equal elmore's to `LARGEST_DIFFERENCE`."""
    largest = max(float(np.abs(a - b).max()) for a, b in zip(ours, theirs, strict=True))
    print(f"- {name}: AllenNLP's vectors and elmore's differ by at most {largest:.1e}")
    if not largest <= LARGEST_DIFFERENCE:
        sys.exit(f"{name}: expected a difference of at most {LARGEST_DIFFERENCE}, got {largest}")


def english_contestants(sentences: Sentences) -> list[Contestant]:
    """Return the English model with and without cached token vectors."""
    contestants = []
    for precision in ("f32", "int8"):
        embedder = elmore.load(precision=precision)
        run = partial(embedder.embed, sentences)
        contestants.append(Contestant(name=f"elmore {precision}, warm", run=run))
        cold = elmore.load(precision=precision)
        contestants.append(
            Contestant(
                name=f"elmore {precision}, cold",
                prepare=cold._engine.cache.clear,
                run=partial(cold.embed, sentences),
            )
        )
    return contestants


def minilm_contestants(bench: Bench, sentences: Sentences) -> list[Contestant]:
    """Return MiniLM in torch and ONNX Runtime; the tokenizer is timed too."""
    from benchmarks.minilm import MiniLM  # noqa: PLC0415  in the other environment

    folder = bench.folder / "minilm"
    folder.mkdir(exist_ok=True)
    return [
        Contestant(name=f"MiniLM, {name}", run=partial(method, sentences))
        for name, method in MiniLM(folder).methods().items()
    ]


def race(
    bench: Bench,
    case: str,
    sentences: Sentences,
    contestants: list[Contestant],
    *,
    repeats: int | None = None,
) -> Iterator[Row]:
    """Time all contestants in turns, wall and CPU."""
    print(f"{case} ...", file=sys.stderr, flush=True)
    cpu: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    timed = [
        Contestant(
            name=contestant.name,
            prepare=partial(_prepare, contestant),
            run=partial(_run_with_cpu, contestant.run, cpu[contestant.name]),
            warm_up=contestant.run,
        )
        for contestant in contestants
    ]
    timings = take_turns(timed, repeats=repeats or bench.repeats)
    for name, timing in timings.items():
        yield Row(
            case=case,
            method=name,
            num_tokens=sum(map(len, sentences)),
            seconds=timing.median,
            cpu_seconds=float(np.median(cpu[name])),
        )


def _prepare(contestant: Contestant) -> None:
    contestant.prepare()
    time.sleep(QUIET_SECONDS)


def _run_with_cpu(run: Callable[[], object], cpu: list[float]) -> object:
    started = time.process_time()
    result = run()
    cpu.append(time.process_time() - started)
    return result


def print_rows(rows: list[Row]) -> None:
    """Print each row, compared with every other program of its case."""
    print(f"\n{torch.get_num_threads()} threads; times are medians.\n")
    print(f"| {' | '.join(COLUMNS)} |")
    print("|" + "---|" * len(COLUMNS))
    for row in rows:
        others = [other for other in rows if other.case == row.case and is_compared(row, other)]
        for other in others or [None]:
            print_row(row, other)


def is_compared(row: Row, other: Row) -> bool:
    if (row.case, row.method, other.method) in WANTED:
        return True
    if row.case.startswith("busy"):
        return row.method.replace("one core busy", "idle") == other.method != row.method
    return row.method.startswith("elmore") and not other.method.startswith("elmore")


def print_row(row: Row, other: Row | None) -> None:
    wanted = None if other is None else WANTED.get((row.case, row.method, other.method))
    ratio = None if other is None else other.seconds / row.seconds
    cells = [
        row.case,
        row.method,
        f"{row.num_tokens:,}",
        f"{1000 * row.seconds:,.2f}",
        f"{1000 * row.cpu_seconds:,.2f}",
        f"{row.num_tokens / row.seconds:,.0f}",
        "" if other is None else other.method,
        "" if ratio is None else f"{ratio:.2f}",
        "" if other is None else f"{other.cpu_seconds / row.cpu_seconds:.2f}",
        "" if wanted is None else f"{wanted:.2f}",
        "" if wanted is None or ratio is None else "yes" if ratio >= wanted else "no",
    ]
    print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
