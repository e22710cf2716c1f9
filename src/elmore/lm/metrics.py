"""What a training run reports: its numbers, one JSON object per line, and its progress."""

import json
import math
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, SupportsFloat

from elmore.errors import DataError, MissingExtraError
from elmore.files.atomic import explaining_write_errors, replace_file
from elmore.jobs.observer import Observer

METRICS = "metrics.jsonl"
TENSORBOARD = "tensorboard"

# What TensorBoard calls the numbers of a line, by its kind.
_SCALARS = {
    "train": {
        "loss": "train/loss",
        "tokens_per_second": "train/tokens_per_second",
        "learning_rate": "train/learning_rate",
        "gradient_norm": "train/gradient_norm",
    },
    "heldout": {
        "perplexity": "heldout/perplexity",
        "forward_perplexity": "heldout/perplexity_forward",
        "backward_perplexity": "heldout/perplexity_backward",
    },
}


@dataclass(frozen=True, kw_only=True, slots=True)
class RunProgress:
    """How far a run has come."""

    step: int
    num_steps: int
    tokens: int  # predicted so far, in one direction
    num_tokens: int
    loss: float  # of the last steps, as in the metrics
    perplexity: float | None  # the last one measured on held-out text
    tokens_per_second: float
    seconds_left: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldoutResult:
    """What a run measured on held-out text; its fields are those of a "heldout" line."""

    step: int
    tokens: int
    seconds: float
    forward_perplexity: float
    backward_perplexity: float
    perplexity: float
    num_predictions: int


class RunObserver(Observer):
    """Follows a run; this one ignores everything."""

    def on_step(self, progress: RunProgress) -> None:
        """Receive the state of the run after a step."""

    def on_heldout(self, result: HeldoutResult) -> None:
        """Receive a measurement on held-out text."""

    def on_checkpoint(self, step: int) -> None:
        """Learn that a kill now loses nothing before `step`."""


class MetricsLog:
    """Appends to the metrics of a run; each line appears whole."""

    def __init__(self, path: Path, *, step: int, kinds: set[str], board: Any = None) -> None:
        self.path = path
        self._step = step
        self._kinds = kinds  # of the lines that there are of this step
        self._board = board
        with explaining_write_errors(path):
            # Without a buffer, a line that did not fit on the disk is not tried again later.
            self._file = path.open("ab", buffering=0)

    @classmethod
    def open(cls, folder: Path, *, at_step: int, tensorboard: bool) -> Self:
        """Go on with the metrics of a run that stands at `at_step`; 0 for a new one.

        What an earlier process wrote of later steps is cut off, since they are taken again.
        """
        path = folder / METRICS
        make_board = _import_board() if tensorboard else None
        lines = _cut_back(path, at_step=at_step)
        kinds = {line["kind"] for line in lines if line["step"] == at_step}
        if make_board is None:
            return cls(path, step=at_step, kinds=kinds)
        is_new = not any((folder / TENSORBOARD).glob("events.out.tfevents.*"))
        with explaining_write_errors(folder / TENSORBOARD):
            board = make_board(folder / TENSORBOARD, purge_step=at_step + 1)
        log = cls(path, step=at_step, kinds=kinds, board=board)
        if is_new:  # perhaps it was not asked for when the run began
            for line in lines:
                log._show_on_board(line)
        return log

    def write(self, kind: str, /, *, step: int, **numbers: SupportsFloat | str | None) -> None:
        """Append a line; what is not a finite number is written as null.

        A line of this kind and step that is there already stays as it is: a run that resumes from
        a checkpoint may measure once more what it had measured just before it.
        """
        if step != self._step:
            self._step, self._kinds = step, set()
        if kind in self._kinds:
            return
        line = {"kind": kind, "step": step, **{name: _plain(x) for name, x in numbers.items()}}
        _append(self._file, json.dumps(line, allow_nan=False).encode() + b"\n", path=self.path)
        self._kinds.add(kind)
        if self._board is not None:
            self._show_on_board(line)

    def close(self) -> None:
        """Let go of the files."""
        self._file.close()
        if self._board is not None:
            with explaining_write_errors(self.path.parent / TENSORBOARD):
                self._board.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _show_on_board(self, line: dict[str, Any]) -> None:
        names = _SCALARS.get(line["kind"], {})
        with explaining_write_errors(self.path.parent / TENSORBOARD):
            for name, shown_as in names.items():
                if line.get(name) is not None:
                    self._board.add_scalar(shown_as, line[name], global_step=line["step"])
            self._board.flush()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Read the lines of a run's metrics; half a last line, left by a kill, is passed over."""
    return [line for line, _ in _read_lines(path)]


def _read_lines(path: Path) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield each line, and its text."""
    try:
        with path.open("rb") as file:
            for number, text in enumerate(file, start=1):
                line = _parse(text)
                if line is not None:
                    yield line, text
                elif text.endswith(b"\n"):
                    raise DataError(
                        f"{path}, line {number}: wanted an object of JSON with a kind and a step, "
                        f"got {text[:40].decode(errors='replace')!r}; take the line out"
                    )
    except FileNotFoundError:
        raise DataError(f"there is no file {path}; check its path") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); check its path") from None


def _parse(text: bytes) -> dict[str, Any] | None:
    """Return what a line says, or nothing if it is damaged."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_whole = (
        isinstance(line, dict)
        and isinstance(line.get("kind"), str)
        and type(line.get("step")) is int  # true and false count as int otherwise
    )
    return line if is_whole else None


def _cut_back(path: Path, *, at_step: int) -> list[dict[str, Any]]:
    """Leave the lines up to `at_step` in the file, and return them."""
    with explaining_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        return []
    # A resumed run has not ended.
    kept = [
        (line, text.removesuffix(b"\n") + b"\n")
        for line, text in _read_lines(path)
        if line["step"] <= at_step and line["kind"] != "end"
    ]
    if path.stat().st_size != sum(len(text) for _, text in kept):
        with replace_file(path) as temporary:
            temporary.write_bytes(b"".join(text for _, text in kept))
    return [line for line, _ in kept]


def _append(file: BinaryIO, text: bytes, *, path: Path) -> None:
    """Add `text` to the end of a file, or leave the file as it was."""
    with explaining_write_errors(path):
        start = os.fstat(file.fileno()).st_size
        try:
            while text:
                text = text[file.write(text) :]
        except OSError:
            with suppress(OSError):
                file.truncate(start)
            raise


def _plain(value: SupportsFloat | str | None) -> float | str | None:
    """Return what JSON has a form for."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Integral):  # numpy's too
        return int(value)
    number = float(value)
    return number if math.isfinite(number) else None


def _import_board() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415  an extra, and slow
    except ImportError:
        raise MissingExtraError(needed_for="TensorBoard", extra="tensorboard") from None
    return SummaryWriter
