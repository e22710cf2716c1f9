"""Measure training speed compared with the peers' method and plain PyTorch, and where time goes.

    python -m benchmarks.pretraining_speed CORPUS [--parts steps run processes] [--json PATH]

CORPUS is a prepared corpus (`elmore prepare`). Prints Markdown tables.

- steps: a training step of `small` and `original` by three methods, in turns in this process, on
  the same windows and with the same negatives; medians. elmore's step includes reading and spelling
  its window; the others are given theirs. See `benchmarks/peers_trainer.py` for the peers' method.
- run: whole runs of `tiny`, `small` and `original`, with every stage timed.
- processes: one process with all cores, and two that share them, started by torchrun in turns.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.machine import describe_machine
from benchmarks.peers_trainer import PeersTrainer
from benchmarks.plain_trainer import PlainNegatives, PlainTrainer, PlainWindow
from benchmarks.pretraining_parts import Case, ElmoreRun, Windows
from benchmarks.python_share import StageClock
from benchmarks.timing import Contestant, take_turns
from elmore.lm.distributed import Group
from elmore.lm.metrics import RunObserver
from elmore.lm.run import Run, set_threads

ELMORE, PLAIN, PEERS = "elmore", "plain PyTorch", "peers' method"
# Stages of a run other than the step itself; the first two happen at intervals of time.
MEASURING, SAVING = "held-out perplexity", "checkpoints"
STEP, REST = "the step: network, softmax, optimizer", "metrics and bookkeeping"

Rows = list[dict[str, Any]]


def main() -> None:
    arguments = parse_arguments()
    if arguments.worker:
        time_worker(arguments)
        return
    command = shlex.join(["python", "-m", "benchmarks.pretraining_speed", *sys.argv[1:]])
    load = f"{os.getloadavg()[0]:.1f}; above 0.5, others disturb what uses all cores"
    facts = {**describe_machine(), "load before": load, "command": f"`{command}`"}
    for name, fact in facts.items():
        print(f"- {name}: {fact}")
    tables: dict[str, Rows] = {}
    for part in arguments.parts:
        tables[part] = PARTS[part](arguments)
        print_table(tables[part])
        if arguments.json:
            content = {"facts": facts, **tables}
            arguments.json.write_text(json.dumps(content, indent=1) + "\n")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pretraining_speed")
    parser.add_argument("corpus", type=Path, help="folder of a prepared corpus")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--models", nargs="+", default=["tiny", "small", "original"])
    parser.add_argument("--repeats", type=int, default=3, help="steps of each method")
    parser.add_argument("--rows", type=int, help="rows of a step; default: those of the settings")
    parser.add_argument("--original-rows", type=int, default=64, help="rows of the large model")
    parser.add_argument(
        "--run-tokens", type=int, nargs=3, default=[100_000, 50_000, 5_000], metavar="N",
        help="tokens of the runs of tiny, small and original",
    )  # fmt: skip
    parser.add_argument("--process-model", default="small")
    parser.add_argument("--process-steps", type=int, default=8)
    parser.add_argument("--set", action="append", default=[], dest="changes", metavar="S.S=V")
    parser.add_argument("--json", type=Path, help="write the tables here too")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def open_case(arguments: argparse.Namespace, model: str, *changes: str) -> Case:
    rows = arguments.original_rows if model == "original" else arguments.rows
    more = [] if rows is None else [f"training.rows={rows}"]
    return Case.open(arguments.corpus, config=model, changes=[*more, *changes, *arguments.changes])


def compare_steps(arguments: argparse.Namespace) -> Rows:
    """Time single steps of three methods."""
    rows: Rows = []
    for model in arguments.models:
        if model == "tiny":  # too small for its speed to matter
            continue
        case = open_case(arguments, model)
        windows = Windows(case)
        trainers = {
            PLAIN: PlainTrainer(*_start(case), **_recipe(case)),
            PEERS: PeersTrainer(*_start(case), **_recipe(case)),
        }
        contestants = [Contestant(name=ELMORE, run=ElmoreRun(case).step)]
        contestants += [_contestant(name, windows, made.step) for name, made in trainers.items()]
        timings = take_turns(contestants, repeats=arguments.repeats)
        num_tokens = windows.read(0)[0].num_predictions
        for name, timing in timings.items():
            rows.append(
                {
                    "model": model,
                    "method": name,
                    "rows": case.settings.training.rows,
                    "negatives": windows.sampler.num_negatives,
                    "words": len(case.corpus.vocabulary),
                    "step, ms": 1000 * timing.median,
                    "tokens/s": num_tokens / timing.median,
                    "elmore is faster by": timing.median / timings[ELMORE].median,
                    "seconds": timing.seconds,
                }
            )
    return rows


def _start(case: Case) -> tuple[Any, Any]:
    elmo, softmax = case.make_parts()
    return elmo.bilm, softmax


def _recipe(case: Case) -> dict[str, Any]:
    return {
        "dropout": case.settings.training.dropout,
        "max_gradient_norm": case.settings.optimizer.max_gradient_norm,
    }


def _contestant(
    name: str, windows: Windows, step: Callable[[PlainWindow, PlainNegatives], float]
) -> Contestant:
    """Run steps of a trainer on consecutive windows, read before the clock starts."""
    following: list[tuple[PlainWindow, PlainNegatives]] = []
    numbers = iter(range(sys.maxsize))
    return Contestant(
        name=name,
        prepare=lambda: following.append(windows.read(next(numbers))),
        run=lambda: step(*following.pop()),
    )


def time_runs(arguments: argparse.Namespace) -> Rows:
    """Run the whole trainer on the corpus, and time its stages."""
    rows: Rows = []
    tokens = dict(zip(("tiny", "small", "original"), arguments.run_tokens, strict=True))
    for model in arguments.models:
        case = open_case(
            arguments,
            model,
            "run.heldout_tokens=2000",
            "run.heldout_steps=1000000",
            "run.checkpoint_minutes=1000000",
        ).lasting(tokens[model])
        with tempfile.TemporaryDirectory() as folder:
            clock, num_tokens = run_with_clock(case, Path(folder, "run"))
        total = sum(clock.seconds.values())
        training = total - clock.seconds[MEASURING] - clock.seconds[SAVING]
        rows.append(
            {
                "model": model,
                "rows": case.settings.training.rows,
                "steps": case.settings.training.max_steps,
                "tokens": num_tokens,
                "tokens/s": num_tokens / training,
                "outside the step, %": 100 * (training - clock.seconds[STEP]) / training,
                **{
                    f"{stage}, %": 100 * seconds / training
                    for stage, seconds in clock.seconds.items()
                    if stage not in (STEP, MEASURING, SAVING)
                },
                "seconds": dict(clock.seconds),
            }
        )
    return rows


def run_with_clock(case: Case, folder: Path) -> tuple[StageClock, int]:
    """Train in a folder; return the time of each stage and the number of tokens predicted."""
    group = Group(device=torch.device("cpu"))
    run = Run(case.settings, case.corpus, folder, group=group, observer=RunObserver())
    run.begin(restart=True)
    clock = StageClock()
    trainer, objective = run.trainer, run.trainer._objective
    trainer.step = clock.wrap(STEP, trainer.step)  # type: ignore[method-assign]
    trainer.streams.read = clock.wrap("windows", trainer.streams.read)  # type: ignore[method-assign]
    objective.speller.spell = clock.wrap("spelling", objective.speller.spell)  # type: ignore[method-assign]
    objective.draw_negatives = clock.wrap("negatives", objective.draw_negatives)  # type: ignore[method-assign]
    run._measure = clock.wrap(MEASURING, run._measure)  # type: ignore[method-assign]
    run.save = clock.wrap(SAVING, run.save)  # type: ignore[method-assign]
    clock.wrap(REST, run.train)()
    clock.seconds.pop("the rest", None)  # from the creation of the clock to the start of the run
    return clock, run.progress.tokens


def compare_processes(arguments: argparse.Namespace) -> Rows:
    """Time one process and two processes, in turns."""
    results: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    for turn in range(arguments.repeats):
        for number in (1, 2) if turn % 2 == 0 else (2, 1):
            results[number].append(run_worker(arguments, number))
    speeds = {
        number: median(result["tokens"] / result["seconds"] for result in of_number)
        for number, of_number in results.items()
    }
    return [
        {
            "model": arguments.process_model,
            "processes": number,
            "threads of each": of_number[0]["threads"],
            "tokens/s": speeds[number],
            "against one": speeds[number] / speeds[1],
            "seconds": [result["seconds"] for result in of_number],
        }
        for number, of_number in results.items()
    ]


def run_worker(arguments: argparse.Namespace, num_processes: int) -> dict[str, float]:
    command = [sys.executable]
    if num_processes > 1:
        command += ["-m", "torch.distributed.run", "--standalone"]
        command += ["--nproc-per-node", str(num_processes)]
    command += ["-m", "benchmarks.pretraining_speed", str(arguments.corpus), "--worker"]
    command += ["--process-model", arguments.process_model]
    command += ["--process-steps", str(arguments.process_steps)]
    command += ["--original-rows", str(arguments.original_rows)]
    command += ["--rows", str(arguments.rows)] if arguments.rows else []
    for change in arguments.changes:
        command += ["--set", change]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def time_worker(arguments: argparse.Namespace) -> None:
    """Run steps as one of several processes; the first one reports the time."""
    case = open_case(arguments, arguments.process_model)
    group = Group(device=torch.device("cpu"))
    set_threads(case.settings, group)
    trainer = case.make_trainer(group)
    trainer.step([])
    started = time.perf_counter()
    tokens = sum(trainer.step([]).num_predictions for _ in range(arguments.process_steps))
    seconds = time.perf_counter() - started
    if group.is_first:
        threads = torch.get_num_threads()
        print(json.dumps({"tokens": tokens, "seconds": seconds, "threads": threads}), flush=True)
    del trainer
    group.close()


def print_table(rows: Rows) -> None:
    """Print all columns except lists of samples."""
    names = list(dict.fromkeys(name for row in rows for name in row if name != "seconds"))
    print()
    print(f"| {' | '.join(names)} |")
    print("|" + "---|" * len(names))
    for row in rows:
        print(f"| {' | '.join(format_cell(row.get(name)) for name in names)} |", flush=True)


def format_cell(value: Any) -> str:
    """Format a number with useful precision.

    >>> [format_cell(value) for value in (None, "small", 12345, 12345.6, 3.14159)]
    ['', 'small', '12,345', '12,346', '3.14']
    """
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value or "")


PARTS = {"steps": compare_steps, "run": time_runs, "processes": compare_processes}

if __name__ == "__main__":
    main()
