"""Is this version slower than another? Runs both by turns, each in a process of its own.

    python -m benchmarks.versions OTHER_CHECKOUT [--cases sentence corpus step] [--rounds 15]

OTHER_CHECKOUT is a checkout of another version with its compiled kernels (`git worktree add`). In
each round, every version runs every case once. The table compares medians of CPU time, which other
programs on the machine disturb less than they do the clock.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
SENTENCE = "The bank of the river was steep ."
NUM_CALLS = 1000
NUM_STEPS = 5


def main() -> None:
    arguments = parse_arguments()
    if arguments.worker:
        work(arguments.cases)
        return
    checkouts = {"other": arguments.other.resolve(), "this": ROOT}
    workers = {name: start(path, arguments.cases) for name, path in checkouts.items()}
    seconds: dict[tuple[str, str], list[dict[str, float]]] = {}
    for number in range(arguments.rounds + 1):
        for case in arguments.cases:
            for name in sorted(workers, reverse=number % 2 == 0):
                found = ask(workers[name], case)
                if number:  # the first round only warms up
                    seconds.setdefault((case, name), []).append(found)
    for worker in workers.values():
        worker.communicate()  # the end of its input ends it
    print("| case | measured | other | this | this / other |\n|---|---|---:|---:|---:|")
    for case in arguments.cases:
        for measure in seconds[case, "this"][0]:
            other, this = (
                median(found[measure] for found in seconds[case, name])
                for name in ("other", "this")
            )
            print(f"| {case} | {measure} | {other:,.0f} | {this:,.0f} | {this / other:.3f} |")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions")
    parser.add_argument("other", type=Path, help="a checkout of the other version")
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def start(checkout: Path, cases: list[str]) -> "subprocess.Popen[str]":
    """Start a process that uses the code of a checkout; this file is the same for all."""
    path = os.pathsep.join([str(checkout / "src"), str(checkout)])
    return subprocess.Popen(
        [sys.executable, __file__, str(checkout), "--worker", "--cases", *cases],
        env={**os.environ, "PYTHONPATH": path},
        cwd=checkout,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ask(worker: "subprocess.Popen[str]", case: str) -> dict[str, float]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    print(case, file=worker.stdin, flush=True)
    return json.loads(worker.stdout.readline())


def work(cases: list[str]) -> None:
    """Prepare the cases, then run each one that is asked for."""
    prepared = {case: CASES[case]() for case in cases}
    for line in sys.stdin:
        print(json.dumps(prepared[line.strip()]()), flush=True)


def prepare_sentence() -> Callable[[], dict[str, float]]:
    """Embed one short sentence many times, as a server does: microseconds of one call."""
    from elmore.embed.embedder import Embedder  # noqa: PLC0415
    from elmore.kernels.library import find_kernel  # noqa: PLC0415
    from elmore.weights.loading import load_model  # noqa: PLC0415

    embedder = Embedder(load_model(ROOT / "tests" / "models" / "tiny"))
    kernel = find_kernel()
    assert kernel is not None
    native, in_kernel = kernel.functions.elmore_read, [0.0]

    def timed(*arguments: object) -> int:
        started = time.thread_time()
        status = native(*arguments)
        in_kernel[0] += time.thread_time() - started
        return status

    kernel.functions.elmore_read = timed

    def run() -> dict[str, float]:
        in_kernel[0] = 0.0
        started = time.process_time()
        for _ in range(NUM_CALLS):
            embedder.embed([SENTENCE])
        total = time.process_time() - started
        scale = 1e6 / NUM_CALLS
        return {
            "one call, µs": scale * total,
            "outside the kernel, µs": scale * (total - in_kernel[0]),
        }

    return run


def prepare_corpus() -> Callable[[], dict[str, float]]:
    """Embed a corpus with the small model of `benchmarks.engine`, case e: milliseconds."""
    from benchmarks.models import CONFIGS  # noqa: PLC0415
    from benchmarks.sentences import generate_sentences  # noqa: PLC0415
    from elmore.embed.embedder import Embedder  # noqa: PLC0415
    from elmore.weights.elmo_model import new_model  # noqa: PLC0415

    embedder = Embedder(new_model(CONFIGS["small"], seed=0))
    generated = generate_sentences()
    sentences = [next(generated) for _ in range(200)]

    def run() -> dict[str, float]:
        embedder.clear_cache()
        started = time.process_time()
        embedder.embed(sentences)
        return {"200 sentences, cold, ms": 1000 * (time.process_time() - started)}

    return run


def prepare_step() -> Callable[[], dict[str, float]]:
    """Train the tiny model on the corpus of the golden files: milliseconds."""
    warnings.simplefilter("ignore")  # the corpus was written by an older version
    from benchmarks.pretraining_parts import Case, ElmoreRun  # noqa: PLC0415

    corpus = ROOT / "tests" / "golden" / "files" / "corpus"
    run = ElmoreRun(Case.open(corpus, config="tiny", changes=[]))

    def take_steps() -> dict[str, float]:
        started = time.process_time()
        for _ in range(NUM_STEPS):
            run.step()
        return {f"{NUM_STEPS} steps, ms": 1000 * (time.process_time() - started)}

    return take_steps


CASES = {"sentence": prepare_sentence, "corpus": prepare_corpus, "step": prepare_step}


if __name__ == "__main__":
    main()
