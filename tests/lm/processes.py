"""The `elmore` command in processes of its own, to be killed at any moment.

Most are forks of the test's own process, which has imported torch already: that takes longer than a
tiny run. Threads do not survive a fork, so that all compute with one.
"""

import os
import signal
import socket
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import rich.console  # noqa: F401  see `Place.make`
import torch

from elmore.cli.app import main
from elmore.lm import distributed
from elmore.lm.metrics import read_metrics
from elmore.lm.pretrain import pretrain_model
from elmore.lm.settings import load_settings
from tests.corpus.corpora import make_documents, prepare, write_tokenized
from tests.lm.runs import assert_same_bits, last_tensors

MOST_SECONDS = 90.0
ONE_STEP = "training.max_steps=1"
ROOT = Path(__file__).parents[2]

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

CONFIG = """
[model.lstm]
num_layers = 2
cell_dim = 12
output_dim = 5

[model.characters]
embedding_dim = 3
max_chars = 9
filters = [[1, 2], [2, 3], [3, 4]]
num_highway_layers = 1

[softmax]
kind = "sampled"
num_negatives = 12

[optimizer]
name = "adagrad"
learning_rate = 0.2

[training]
rows = 8
window = 5
num_epochs = 1000
max_steps = 12
dropout = 0.2

[run]
log_steps = 1
heldout_steps = 4
checkpoint_steps = 5
rest_tokens = 40
threads = 1
"""


@dataclass(frozen=True)
class Place:
    """A folder with a corpus and settings, where runs are made."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> "Place":
        prepare(write_tokenized(make_documents(40)), folder / "corpus", heldout=0.1)
        (folder / "tiny.toml").write_text(CONFIG)
        # What torch imports at a first step takes seconds: every fork is to have it already.
        pretrain_model(
            load_settings(folder / "tiny.toml", [ONE_STEP]), folder / "corpus", folder / "first"
        )
        return cls(folder)

    def arguments(self, run: str, *changes: str, corpus: str = "corpus") -> list[str]:
        """The command that starts or resumes a run."""
        places = [str(self.folder / name) for name in ("tiny.toml", corpus, run)]
        settings = [part for change in changes for part in ("--set", change)]
        return ["pretrain", places[0], "--corpus", places[1], "--out", places[2], *settings]

    @contextmanager
    def forked(
        self,
        run: str,
        *changes: str,
        size: int = 1,
        in_child: Callable[[int], object] = lambda rank: None,
        corpus: str = "corpus",
        options: Sequence[str] = (),
    ) -> Iterator["Processes"]:
        """A run of `size` processes; each calls `in_child` with its rank first."""
        arguments = [*self.arguments(run, *changes, corpus=corpus), *options]
        processes = Processes(arguments, size=size, in_child=in_child, log=self.folder / run)
        try:
            yield processes
        finally:
            processes.end()

    def complete(self, run: str, *changes: str, **options) -> None:
        """Let a run come to its end."""
        with self.forked(run, *changes, **options) as processes:
            statuses = processes.wait()
            assert statuses == [0] * len(statuses), processes.printed()

    def lines(self, run: str) -> list[dict]:
        """What the metrics of a run say so far."""
        path = self.folder / run / "metrics.jsonl"
        return read_metrics(path) if path.exists() else []

    def last_step(self, run: str) -> int:
        return max((line["step"] for line in self.lines(run)), default=0)

    def wait_for_step(self, run: str, step: int) -> None:
        """Wait until the metrics have come to a step."""
        wait_until(lambda: self.last_step(run) >= step, f"step {step} of {run}")

    def checkpoints(self, run: str) -> list[int]:
        paths = (self.folder / run / "checkpoints").glob("step-*.json")
        return sorted(int(path.stem.removeprefix("step-")) for path in paths)

    def assert_alike(self, run: str, expected: str) -> None:
        """Two runs have the same end: all tensors, the model, the metrics but for times."""
        found, wanted = self.folder / run, self.folder / expected
        assert_same_bits(last_tensors(found), last_tensors(wanted))
        weights = [path.name for path in sorted((wanted / "model").iterdir())]
        assert {"model.safetensors", "softmax.safetensors", "softmax_words.txt"} <= set(weights)
        for name in weights:
            if Path(name).suffix in (".safetensors", ".txt"):
                assert (found / "model" / name).read_bytes() == (
                    wanted / "model" / name
                ).read_bytes(), name
        assert without_times(self.lines(run)) == without_times(self.lines(expected))

    def list_files(self, run: str) -> list[str]:
        """All files of a run, hidden ones too."""
        folder = self.folder / run
        return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def without_times(lines: list[dict]) -> list[dict]:
    timed = ("seconds", "tokens_per_second")
    return [{k: v for k, v in line.items() if k not in timed} for line in lines]


class Processes:
    """Processes of one run."""

    def __init__(
        self, arguments: list[str], *, size: int, in_child: Callable[[int], object], log: Path
    ) -> None:
        self.pids: list[int] = []
        self._logs = [log.with_name(f"{log.name}-{rank}.log") for rank in range(size)]
        self._statuses: dict[int, int] = {}
        environment = {"WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
        environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": find_port()}
        for rank in range(size):
            environment |= {"RANK": rank, "LOCAL_RANK": rank}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
                pid = os.fork()
            if pid == 0:
                os.environ.update({name: str(value) for name, value in environment.items()})
                _become_command(arguments, log=self._logs[rank], begin=lambda r=rank: in_child(r))
            self.pids.append(pid)

    def kill(self, rank: int = 0, number: int = signal.SIGKILL) -> None:
        os.kill(self.pids[rank], number)

    def wait(self) -> list[int]:
        """Return the statuses of all; a signal's number counts as negative."""
        wait_until(lambda: all(self.has_ended(rank) for rank in range(len(self.pids))), self)
        return [self._statuses[pid] for pid in self.pids]

    def has_ended(self, rank: int = 0) -> bool:
        pid = self.pids[rank]
        if pid not in self._statuses:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._statuses[pid] = os.waitstatus_to_exitcode(status)
        return pid in self._statuses

    def printed(self) -> str:
        """What all have printed, the last attempt of each."""
        return "".join(log.read_text() for log in self._logs if log.exists())

    def end(self) -> None:
        """Leave nothing behind after a test."""
        for rank, pid in enumerate(self.pids):
            if not self.has_ended(rank):
                os.kill(pid, signal.SIGKILL)
        self.wait()

    def __str__(self) -> str:
        return f"the end of {len(self.pids)} processes, which printed: {self.printed()}"


def _become_command(arguments: list[str], *, log: Path, begin: Callable[[], object]) -> None:
    """Be the command instead of a test; never return to the test."""
    status = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        log.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
        sys.argv = ["elmore", *arguments]
        torch.set_num_threads(1)
        distributed.SECONDS_TO_SPEAK = 0.1  # nobody ends the others of a fork
        begin()
        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:  # a fork must not continue as its parent
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def find_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(is_true: Callable[[], bool], what: object) -> None:
    end = time.monotonic() + MOST_SECONDS
    while not is_true():
        if time.monotonic() > end:
            pytest.fail(f"waited {MOST_SECONDS:.0f} seconds for {what}")
        time.sleep(0.002)


@contextmanager
def command(*arguments: str) -> Iterator[subprocess.Popen]:
    """A program with an import of its own, as a user starts it: `python -m ...`."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()  # torchrun would leave its processes behind if killed
            print(*finish(process))


def finish(process: subprocess.Popen) -> tuple[int, str]:
    """Wait for a program; return its status and what it said to the user."""
    out, err = process.communicate(timeout=MOST_SECONDS)
    return process.returncode, out + err
