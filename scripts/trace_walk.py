"""Show which source files a command passes through and how often it switches between them.

    python scripts/trace_walk.py                      # the standard walks, as a Markdown table
    python scripts/trace_walk.py embed text.txt       # one command, file by file

A walk is the sequence of files in `src/elmore` whose functions are called. Each call into a file
other than that of the previous call is a switch. Modules are imported beforehand, so imports do not
count. Only the main thread is traced. ARCHITECTURE.md keeps the table.
"""

import contextlib
import io
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "elmore"
MODEL = ROOT / "tests" / "models" / "tiny"
CORPUS = ROOT / "tests" / "golden" / "files" / "corpus"
TEXT = "The bank of the river .\nShe went to the bank .\n"
ENTITIES = "".join(
    f"{name} NNP I-NP I-PER\nsaw VBD I-VP O\n{place} NNP I-NP I-LOC\n\n"
    for name, place in (("Anna", "Rome"), ("Bob", "Paris"), ("Cleo", "Athens"), ("Dan", "Oslo"))
    for _ in range(3)
)


class Walk:
    """Records the file of every call; with `within`, only of calls while that function runs."""

    def __init__(self, within: str | None = None) -> None:
        self.calls: list[str] = []
        self._within = within
        self._outermost: FrameType | None = None

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Record a call, for `sys.setprofile`; running the body of a module is not a call."""
        code = frame.f_code
        if self._within is not None and not self._is_inside(frame, event):
            return
        is_ours = code.co_filename.startswith(str(SOURCE)) and code.co_name != "<module>"
        if event == "call" and is_ours:
            self.calls.append(str(Path(code.co_filename).relative_to(SOURCE)))

    def _is_inside(self, frame: FrameType, event: str) -> bool:
        if self._outermost is None and frame.f_code.co_qualname == self._within:
            self._outermost = frame
        elif self._outermost is frame and event == "return":
            self._outermost = None
        return self._outermost is not None

    @property
    def files(self) -> list[str]:
        """The files in the order of their first call."""
        return list(dict.fromkeys(self.calls))

    @property
    def num_switches(self) -> int:
        """Calls into another file than the call before."""
        return max(0, sum(1 for _ in groupby(self.calls)) - 1)


def walk(*arguments: object, within: str | None = None) -> Walk:
    """Run a command twice, and trace the second run."""
    run(*arguments)
    watcher = Walk(within)
    sys.setprofile(watcher)
    try:
        run(*arguments)
    finally:
        sys.setprofile(None)
    return watcher


def run(*arguments: object) -> None:
    """Run an elmore command in this process."""
    from elmore.cli.app import main  # noqa: PLC0415

    argv, sys.argv = sys.argv, ["elmore", *map(str, arguments)]
    printed, complaints = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complaints):
            main()
    except SystemExit as end:
        if end.code:
            raise SystemExit(complaints.getvalue()) from None
    finally:
        sys.argv = argv


def standard_walks(folder: Path) -> Iterator[tuple[str, Walk]]:
    """Yield the standard walks with their titles."""
    text, weights = folder / "text.txt", folder / "weights.hdf5"
    text.write_text(TEXT, encoding="utf-8")
    for part in ("train", "dev"):
        (folder / f"{part}.txt").write_text(ENTITIES, encoding="utf-8")
    run("convert", MODEL, "--to", "bilm-tf", "--from-zeros", "--out", weights)
    yield (
        "embed a file",
        walk("embed", text, "--model", MODEL, "--out", folder / "x.npz", "--restart"),
    )
    step = (
        "pretrain", "tiny", "--corpus", CORPUS, "--out", folder / "run", "--restart",
        "--set=training.max_steps=1", "--set=training.rows=4", "--set=run.rest_tokens=0",
        "--set=run.heldout_steps=9",
    )  # fmt: skip
    yield "pretrain for one step", walk(*step)
    yield "the step alone", walk(*step, within="Trainer.step")
    fit = (
        "fit", "ner", "--train", folder / "train.txt", "--dev", folder / "dev.txt",
        "--elmo", MODEL, "--out", folder / "task", "--restart",
        "--set=training.max_epochs=1", "--set=training.min_epoch_steps=1",
    )  # fmt: skip
    yield "fit ner, one epoch", walk(*fit)
    yield "bilm-tf HDF5 to a vector", walk("embed", text, "--model", weights)


def main() -> None:
    """Print the standard walks, or one in detail."""
    if len(sys.argv) > 1:
        watched = walk(*sys.argv[1:])
        print("\n".join(watched.files))
        print(f"{len(watched.files)} files, {watched.num_switches} switches")
        return
    print("| walk | files | switches |\n|---|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        for title, watched in standard_walks(Path(name)):
            print(f"| {title} | {len(watched.files)} | {watched.num_switches:,} |")


if __name__ == "__main__":
    main()
