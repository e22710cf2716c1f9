"""What pretraining prints: a live bar or a line per minute, then a report."""

import json
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from elmore.cli.display import LogLines
from elmore.lm.metrics import HeldoutResult, RunObserver, RunProgress
from elmore.wording import count, format_count, format_perplexity, format_seconds

if TYPE_CHECKING:
    from rich.console import Console, Group

    from elmore.lm.finish import RunReport

# The weight of the earlier losses in the smoothed loss.
SMOOTHING = 0.8


class TrainingDisplay(RunObserver):
    """Shows a training run on standard error; the loss is smoothed."""

    def __init__(
        self, console: "Console | None" = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._lines = LogLines(console, clock=clock)
        self._live: _LiveLines | None = None
        self._loss = _SmoothedLoss()
        self._perplexity: float | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the run while the block runs, in the first of several processes."""
        if os.environ.get("RANK", "0") != "0":
            yield
            return
        self._live = None if self._lines.is_log else _LiveLines(self._lines.console)
        try:
            with nullcontext() if self._live is None else self._live.shown():
                yield
        finally:
            self._live = None
            self._lines.print_last()

    def on_step(self, progress: RunProgress) -> None:
        """Show the progress of the run."""
        self._loss.add(progress.loss)
        if progress.perplexity is not None:
            self._perplexity = progress.perplexity
        line = _describe(progress, loss=self._loss.value)
        if self._live is not None:
            self._live.show(progress, loss=self._loss.value, perplexity=self._perplexity)
            self._lines.keep(line)
        else:
            self._lines.print_progress(line)

    def on_heldout(self, result: HeldoutResult) -> None:
        """Show a perplexity, and the one before it."""
        line = (
            f"step {result.step:,}: held-out perplexity {format_perplexity(result.perplexity)} "
            f"(forward {format_perplexity(result.forward_perplexity)}, "
            f"backward {format_perplexity(result.backward_perplexity)})"
        )
        if self._perplexity is not None:
            line += f", before {format_perplexity(self._perplexity)}"
        self._perplexity = result.perplexity
        self.on_message(line)

    def on_checkpoint(self, step: int) -> None:
        """Show the step of the last checkpoint, except in a log."""
        if self._live is not None:
            self._live.set_checkpoint(step)

    def on_message(self, text: str) -> None:
        """Print a sentence permanently."""
        if self._live is not None:
            self._live.end_stage()
        self._lines.print(text)

    def on_stage(self, text: str, share: float | None = None) -> None:
        """Show work other than steps, until the next step."""
        if self._live is not None:
            self._live.show_stage(text, share)
        elif (share is None or share < 1) and self._lines.is_due():
            self._lines.print(text if share is None else f"{text}: {share:.0%}")


class _SmoothedLoss:
    """An exponential moving average."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._weight = 0.0
        self.value = math.nan

    def add(self, loss: float) -> None:
        if not math.isfinite(loss):  # shown at once, but kept out of the average
            self.value = loss
            return
        self._sum = SMOOTHING * self._sum + (1 - SMOOTHING) * loss
        self._weight = SMOOTHING * self._weight + (1 - SMOOTHING)
        self.value = self._sum / self._weight


class _LiveLines:
    """A bar, numbers below it, and the current stage below these."""

    def __init__(self, console: "Console") -> None:
        from rich.live import Live  # noqa: PLC0415  slow to import
        from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

        def make_bar(name: str) -> Progress:
            name_column, end_column = (
                TextColumn("{task.description}"),
                TextColumn("{task.fields[end]}"),
            )
            bar = Progress(name_column, BarColumn(bar_width=None), end_column, expand=True)
            bar.add_task(name, total=None, end="", visible=False)
            return bar

        self._steps = make_bar("training")
        self._stage = make_bar("")
        self._numbers: list[tuple[str, str]] = []
        self._checkpoint: int | None = None
        self._live = Live(
            console=console, get_renderable=self._render, transient=True, refresh_per_second=4
        )

    @contextmanager
    def shown(self) -> Iterator[None]:
        with self._live:
            yield

    def show(self, progress: RunProgress, *, loss: float, perplexity: float | None) -> None:
        self.end_stage()
        end = f"{progress.step:,} of {count(progress.num_steps, 'step')}"
        if progress.seconds_left is not None:
            end += f" · {format_seconds(progress.seconds_left)} left"
        self._steps.update(
            self._steps.task_ids[0],
            completed=progress.step,
            total=progress.num_steps,
            end=end,
            visible=True,
        )
        numbers = [("loss", f"{loss:.3f}")]
        if perplexity is not None:
            numbers.append(("held-out perplexity", format_perplexity(perplexity)))
        numbers.append(("tokens/s", f"{progress.tokens_per_second:,.0f}"))
        numbers.append(("tokens", format_count(progress.tokens)))
        self._numbers = numbers

    def show_stage(self, name: str, share: float | None) -> None:
        self._stage.tasks[0].total = None if share is None else 1.0  # without a total, it pulses
        self._stage.update(
            self._stage.task_ids[0],
            description=name,
            completed=share or 0.0,
            end="" if share is None else f"{share:.0%}",
            visible=share is None or share < 1,
        )

    def end_stage(self) -> None:
        self._stage.update(self._stage.task_ids[0], visible=False)

    def set_checkpoint(self, step: int) -> None:
        self._checkpoint = step

    def _render(self) -> "Group":
        from rich.console import Group  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        numbers = list(self._numbers)
        if self._checkpoint is not None:
            numbers.append(("saved at step", f"{self._checkpoint:,}"))
        line = Text("   ", no_wrap=True, overflow="ellipsis").join(
            Text.assemble((f"{name} ", "dim"), (number, "bold")) for name, number in numbers
        )
        bars = [bar for bar in (self._steps, self._stage) if bar.tasks[0].visible]
        return Group(*bars[:1], *([line] if numbers else []), *bars[1:])


def _describe(progress: RunProgress, *, loss: float) -> str:
    share = progress.step / progress.num_steps if progress.num_steps else 0.0
    line = (
        f"step {progress.step:,} of {progress.num_steps:,} ({share:.0%}): loss {loss:.3f}, "
        f"{format_count(progress.tokens)} tokens, {progress.tokens_per_second:,.0f} tokens/s"
    )
    left = progress.seconds_left
    return f"{line}, {format_seconds(left)} left" if left else line


def print_run_report(report: "RunReport", *, as_json: bool) -> None:
    """Print the result of a run."""
    if as_json:
        print(json.dumps(report.to_json()))
        return
    print(
        f"{report.folder / 'model'}: {count(report.step, 'step')}, "
        f"{count(report.tokens, 'token')} in "
        f"{format_seconds(report.seconds)} ({report.reason})"
    )
    if report.heldout is None:
        print("  no text was held out, so nothing is known of its perplexity")
    else:
        print(f"  on {report.heldout.num_predictions:,} held-out tokens and sentence ends:")
    rows = [("held out, state carried", report.heldout)]
    if report.starts is not None:
        rows += [
            ("every sentence from zeros", report.starts.zeros),
            (
                f"every sentence from the rest state ({report.starts.strength:.0%} of the mean)",
                report.starts.rest,
            ),
        ]
    rows += [(f"held out, {name}", totals) for name, totals in report.sources.items()]
    for name, totals in rows:
        if totals is not None:
            print(
                f"  perplexity, {name}: {totals.perplexity:.2f} "
                f"(forward {totals.forward_perplexity:.2f}, "
                f"backward {totals.backward_perplexity:.2f})"
            )
