"""Check that a run that is killed repeatedly ends with the same bits as an undisturbed one.

    python -m benchmarks.kill_runs CORPUS OUT [--config tiny] [--kills 25] [--seed 1]
        [--steps 300] [--checkpoint-steps 5] [--set SECTION.SETTING=VALUE]

CORPUS is a prepared corpus (`elmore prepare`). Trains in OUT/whole without interruption, and in
OUT/killed with SIGKILL at random moments: after some steps, or while a checkpoint is being written.
Each start is a new process that runs the usual command. Prints a Markdown table of the kills, and
compares the last checkpoints, the models, and the metrics except for times. Exits with status 1 if
anything differs.
"""

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.machine import describe_machine
from elmore.jobs.checkpoint import Checkpoints
from elmore.lm.metrics import METRICS, read_metrics

TIMES = ("seconds", "tokens_per_second")


@dataclass(frozen=True, kw_only=True, slots=True)
class Kill:
    """One SIGKILL and the steps it cost."""

    moment: str
    step: int  # the last one in the metrics
    saved_step: int  # of the newest checkpoint
    seconds: float  # lifetime of the process


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run in a folder, and the command that starts or resumes it."""

    folder: Path
    command: list[str]

    def start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def complete(self) -> None:
        subprocess.run(self.command, check=True, stdout=subprocess.DEVNULL)

    def last_step(self) -> int:
        path = self.folder / METRICS
        return read_metrics(path)[-1]["step"] if path.exists() and path.stat().st_size else 0

    def saved_step(self) -> int:
        return max(Checkpoints(self.folder / "checkpoints", keep=1).steps(), default=0)

    def is_saving(self) -> bool:
        return any(self.folder.glob("checkpoints/.step-*.tmp"))


def main() -> None:
    arguments = read_arguments()
    runs = {name: make_run(arguments, name) for name in ("whole", "killed")}
    print(f"{describe_machine()}\n")
    started = time.perf_counter()
    runs["whole"].complete()
    print(
        f"undisturbed: {runs['whole'].last_step()} steps, {time.perf_counter() - started:.0f} s\n"
    )
    print("| kill | moment | at step | checkpoint | the process lived |\n|---|---|---|---|---|")
    chooser = random.Random(arguments.seed)
    kills = 0
    while kills < arguments.kills:
        kill = kill_once(runs["killed"], chooser, max_ahead=arguments.max_ahead)
        if kill is None:
            print(f"\nIt came to its end after {kills} kills; give more --steps.\n")
            break
        kills += 1
        print(
            f"| {kills} | {kill.moment} | {kill.step} | {kill.saved_step} | {kill.seconds:.1f} s |",
            flush=True,
        )
    runs["killed"].complete()
    differences = list(compare(runs["killed"].folder, runs["whole"].folder))
    print(f"\n{kills} kills; " + ("; ".join(differences) or "all bits are the same"))
    sys.exit(1 if differences else 0)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--config", default="tiny")
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--max-ahead", type=int, default=8, help="most steps before a kill")
    parser.add_argument("--checkpoint-steps", type=int, default=5)
    parser.add_argument("--set", dest="changes", action="append", default=[])
    return parser.parse_args()


def make_run(arguments: argparse.Namespace, name: str) -> Run:
    changes = [
        f"training.max_steps={arguments.steps}",
        f"run.checkpoint_steps={arguments.checkpoint_steps}",
        "run.log_steps=1",
        *arguments.changes,
    ]
    folder = arguments.out / name
    command = [sys.executable, "-m", "elmore", "pretrain", arguments.config]
    command += ["--corpus", str(arguments.corpus), "--out", str(folder)]
    command += [part for change in changes for part in ("--set", change)]
    return Run(folder=folder, command=command)


def kill_once(run: Run, chooser: random.Random, *, max_ahead: int) -> Kill | None:
    """Start a process and kill it; return None if it finishes first."""
    target = run.last_step() + chooser.randint(1, max_ahead)
    moments: dict[str, Callable[[], bool]] = {
        "after steps": lambda: run.last_step() >= target,
        "writing a checkpoint": run.is_saving,
    }
    if run.is_saving():  # left by the last kill; removed when the run resumes
        del moments["writing a checkpoint"]
    moment = chooser.choice(sorted(moments))
    started = time.perf_counter()
    process = run.start()
    while not moments[moment]():
        if process.poll() is not None:
            return None
        time.sleep(0.001)
    time.sleep(chooser.uniform(0, 0.05 if moment == "after steps" else 0.01))
    process.kill()
    process.wait()
    return Kill(
        moment=moment,
        step=run.last_step(),
        saved_step=run.saved_step(),
        seconds=time.perf_counter() - started,
    )


def compare(found: Path, expected: Path) -> Iterator[str]:
    """Yield all differences."""
    tensors = [_read_last(folder) for folder in (found, expected)]
    if tensors[0].keys() != tensors[1].keys():
        yield "the checkpoints keep different things"
    for name in tensors[0].keys() & tensors[1].keys():
        if not torch.equal(tensors[0][name], tensors[1][name]):
            yield f"{name} of the checkpoint"
    for path in sorted((expected / "model").iterdir()):
        if path.suffix in (".safetensors", ".txt"):
            other = found / "model" / path.name
            if not other.exists() or other.read_bytes() != path.read_bytes():
                yield f"model/{path.name}"
    lines = [_without_times(read_metrics(folder / METRICS)) for folder in (found, expected)]
    if lines[0] != lines[1]:
        yield "the metrics"


def _read_last(folder: Path) -> dict[str, torch.Tensor]:
    newest = Checkpoints(folder / "checkpoints", keep=1).read_newest(on_message=print)
    return newest.tensors if newest is not None else {}


def _without_times(lines: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{name: value for name, value in x.items() if name not in TIMES} for x in lines]


if __name__ == "__main__":
    main()
