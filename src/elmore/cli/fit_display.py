"""What a task's training shows: a bar on a terminal, a line an epoch anywhere."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from elmore.errors import DataWarning

if TYPE_CHECKING:
    from elmore.tasks.fit.progress import CurvePoint, FitProgress


# What is worth a line in a log.
TOLD_STAGES = ("embedding", "fine-tuning", "waiting", "going on")


def _print_warning(
    others: Callable[..., None], message: Warning | str, category: type[Warning], *place: Any
) -> None:
    """Print what is odd in the data as a line; warnings of libraries keep their form."""
    if issubclass(category, DataWarning):
        print(f"elmore: {message}", file=sys.stderr)
    else:
        others(message, category, *place)


class FitDisplay:
    """Hears of a training and shows it on standard error."""

    def __init__(self, *, score_name: str = "score") -> None:
        self.score_name = score_name
        self._bar: Any = None
        self._task: Any = None
        self._stage = ""
        self._is_terminal = False

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show a bar while the work inside goes on, if there is a terminal to show it on."""
        from rich import progress  # noqa: PLC0415  takes time, and `elmore --help` has no use for it
        from rich.console import Console  # noqa: PLC0415

        console = Console(stderr=True)
        with (
            progress.Progress(
                progress.TextColumn("{task.description}"),
                progress.BarColumn(),
                progress.TimeElapsedColumn(),
                progress.TextColumn("left in this epoch"),
                progress.TimeRemainingColumn(),
                console=console,
                transient=True,
                disable=not console.is_terminal,
            ) as self._bar,
            warnings.catch_warnings(),
        ):
            self._is_terminal = console.is_terminal
            self._task = self._bar.add_task("beginning", total=None)
            warnings.simplefilter("default", DataWarning)  # each once
            warnings.showwarning = partial(_print_warning, warnings.showwarning)
            yield

    def on_stage(self, text: str) -> None:
        """Show what is being done: without a terminal by a line, if it is worth one."""
        if self._bar is not None:
            self._bar.update(self._task, description=text, total=None, completed=0)
        stage = text.partition(",")[0]  # behind it, how much of it is done
        if not self._is_terminal and stage != self._stage and stage.startswith(TOLD_STAGES):
            print(text, file=sys.stderr)
        self._stage = stage

    def on_step(self, progress: "FitProgress", *, num_steps: int, loss: float) -> None:
        """Move the bar."""
        if self._bar is None:
            return
        if progress.place == 1:
            self._bar.reset(self._task, total=num_steps)
        best = "" if progress.best_score is None else f", best {progress.best_score:.2f}"
        self._bar.update(
            self._task,
            description=f"epoch {progress.epoch + 1}: loss {loss:.3f}{best}",
            total=num_steps,
            completed=progress.place,
        )

    def on_epoch(self, point: "CurvePoint", *, is_best: bool) -> None:
        """Print how an epoch ended."""
        mark = " (best so far)" if is_best else ""
        print(
            f"epoch {point.epoch}: loss {point.loss:.4f}, dev {self.score_name} {point.dev:.2f}"
            f"{mark}, {point.seconds:.0f} s",
            file=sys.stderr,
        )
