"""What training on a task prints: a bar or a line per minute, and a line per epoch."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from elmore.cli.display import LogLines, printing_data_warnings
from elmore.tasks.fit.progress import EpochResult, FitObserver, FitProgress

if TYPE_CHECKING:
    from rich.console import Console


# Stages that get a line in a log as soon as they start.
LOGGED_STAGES = ("embedding", "fine-tuning", "waiting")


class FitDisplay(FitObserver):
    """Shows a training run on standard error."""

    def __init__(
        self,
        console: "Console | None" = None,
        *,
        score_name: str = "score",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.score_name = score_name
        self._lines = LogLines(console, clock=clock)
        self._bar: Any = None
        self._task: Any = None
        self._stage = ""

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the training run while the block runs."""
        from elmore.cli.bars import make_bar  # noqa: PLC0415  rich is slow to import

        with (
            make_bar(left="left in this epoch", console=self._lines.console) as self._bar,
            printing_data_warnings(),
        ):
            self._task = self._bar.add_task("starting", total=None)
            self._lines.start_clock()
            yield

    def on_stage(self, text: str, share: float | None = None) -> None:
        """Show what is being done; a log gets a line when a long stage starts, and per minute."""
        if self._bar is None:
            return
        if share is not None:
            text = f"{text}, {share:.0%}"
        self._bar.update(self._task, description=text, total=None, completed=0)
        stage = text.partition(",")[0]  # after the comma comes the progress
        if self._lines.is_log:
            is_new = stage != self._stage and stage.startswith(LOGGED_STAGES)
            if is_new:
                self._lines.start_clock()
            if is_new or self._lines.is_due():
                self._lines.print(text)
        self._stage = stage

    def on_message(self, text: str) -> None:
        """Print lines permanently."""
        self._lines.print(text)

    def on_step(self, progress: FitProgress, *, num_steps: int, loss: float) -> None:
        """Move the bar; a log gets a line per minute."""
        if self._bar is None:
            return
        best = "" if progress.best_score is None else f", best {progress.best_score:.2f}"
        if self._lines.is_log:
            if self._lines.is_due():
                step = f"step {progress.epoch_step:,} of {num_steps:,}"
                self._lines.print(f"epoch {progress.epoch + 1}, {step}: loss {loss:.4f}{best}")
            return
        if progress.epoch_step == 1:
            self._bar.reset(self._task, total=num_steps)
        self._bar.update(
            self._task,
            description=f"epoch {progress.epoch + 1}: loss {loss:.3f}{best}",
            total=num_steps,
            completed=progress.epoch_step,
        )

    def on_epoch(self, result: EpochResult, *, is_best: bool) -> None:
        """Print the result of an epoch."""
        mark = " (best so far)" if is_best else ""
        self._lines.print(
            f"epoch {result.epoch}: loss {result.loss:.4f}, dev {self.score_name} {result.dev:.2f}"
            f"{mark}, {result.seconds:.0f} s"
        )
        self._lines.start_clock()
