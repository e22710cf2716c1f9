"""What a training run reports: metrics, one JSON object per line, and progress."""

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

# TensorBoard's names for the numbers of a line, by the line's kind.
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
    """The state of a run after a step."""

    step: int
    num_steps: int
    tokens: int  # predicted so far, in one direction
    num_tokens: int
    loss: float  # per token, since the last line of the metrics
    perplexity: float | None  # the latest on held-out text
    tokens_per_second: float
    seconds_left: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldoutResult:
    """A measurement on held-out text; the fields are those of a "heldout" line."""

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
        """Receive the step of a checkpoint that was just written."""


class MetricsLog:
    """Appends to the metrics of a run; no partial line is left behind."""

    def __init__(self, path: Path, *, step: int, kinds: set[str], board: Any = None) -> None:
        self.path = path
        self._step = step
        self._kinds = kinds  # kinds of the lines already written for this step
        self._board = board
        with explaining_write_errors(path):
            # Unbuffered, so that a line that did not fit on the disk is not retried later.
            self._file = path.open("ab", buffering=0)

    @classmethod
    def open(cls, folder: Path, *, at_step: int, tensorboard: bool) -> Self:
        """Continue the metrics of a run that is at `at_step`; 0 for a new run.

        Lines of later steps are removed, since those steps are run again.
        """
        path = folder / METRICS
        make_board = _import_board() if tensorboard else None
        lines = _truncate(path, at_step=at_step)
        kinds = {line["kind"] for line in lines if line["step"] == at_step}
        if make_board is None:
            return cls(path, step=at_step, kinds=kinds)
        is_new = not any((folder / TENSORBOARD).glob("events.out.tfevents.*"))
        with explaining_write_errors(folder / TENSORBOARD):
            board = make_board(folder / TENSORBOARD, purge_step=at_step + 1)
        log = cls(path, step=at_step, kinds=kinds, board=board)
        if is_new:  # TensorBoard may have been turned on only now
            for line in lines:
                log._write_to_board(line)
        return log

    def write(self, kind: str, /, *, step: int, **numbers: SupportsFloat | str | None) -> None:
        """Append a line; numbers that are not finite are written as null.

        If this step already has a line of this kind, it is kept: a run that resumes from a
        checkpoint may repeat the measurement made just before it.
        """
        if step != self._step:
            self._step, self._kinds = step, set()
        if kind in self._kinds:
            return
        line = {"kind": kind, "step": step, **{name: _plain(x) for name, x in numbers.items()}}
        _append(self._file, json.dumps(line, allow_nan=False).encode() + b"\n", path=self.path)
        self._kinds.add(kind)
        if self._board is not None:
            self._write_to_board(line)

    def close(self) -> None:
        """Close the files."""
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

    def _write_to_board(self, line: dict[str, Any]) -> None:
        names = _SCALARS.get(line["kind"], {})
        with explaining_write_errors(self.path.parent / TENSORBOARD):
            for name, shown_as in names.items():
                if line.get(name) is not None:
                    self._board.add_scalar(shown_as, line[name], global_step=line["step"])
            self._board.flush()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Read the lines of a run's metrics; an incomplete last line, left by a kill, is skipped."""
    return [line for line, _ in _read_lines(path)]


def _read_lines(path: Path) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield each line, parsed and as text."""
    try:
        with path.open("rb") as file:
            for number, text in enumerate(file, start=1):
                line = _parse(text)
                if line is not None:
                    yield line, text
                elif text.endswith(b"\n"):
                    raise DataError(
                        f"{path}, line {number}: expected a JSON object with a kind and a step, "
                        f"got {text[:40].decode(errors='replace')!r}; delete the line"
                    )
    except FileNotFoundError:
        raise DataError(f"there is no file {path}; check the path") from None
    except OSError as error:
        raise DataError(f"cannot read {path} ({error.strerror}); check the path") from None


def _parse(text: bytes) -> dict[str, Any] | None:
    """Return the content of a line, or None if it is damaged."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_whole = (
        isinstance(line, dict)
        and isinstance(line.get("kind"), str)
        and type(line.get("step")) is int  # isinstance would accept true and false
    )
    return line if is_whole else None


def _truncate(path: Path, *, at_step: int) -> list[dict[str, Any]]:
    """Remove lines after `at_step` from the file, and return the others."""
    with explaining_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        return []
    # A resumed run has not ended, so "end" lines go too.
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
    """Append `text` to a file; if that fails, restore the file."""
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
    """Return a value that JSON can represent."""
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
