"""What jobs print to standard error: progress as a bar or as lines, warnings, why they stopped."""

import math
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from elmore.errors import DataWarning
from elmore.jobs.stopping import StoppedError, resume_hint

if TYPE_CHECKING:
    from rich.console import Console

    from elmore.cluster.progress import FilesProgress
    from elmore.corpus.progress import PrepareProgress

# A log file, as under nohup, cannot be overwritten, so progress is printed no more often than this.
SECONDS_BETWEEN_LINES = 60.0


class LogLines:
    """Prints messages, and progress if there is no bar."""

    def __init__(
        self, console: "Console | None" = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._given = console
        self._clock = clock
        self._last_line_at = -math.inf
        self._unprinted: str | None = None

    @cached_property
    def console(self) -> "Console":
        """The console that lines are printed to."""
        from elmore.cli.bars import make_console  # noqa: PLC0415  rich is slow to import

        return self._given or make_console()

    @property
    def is_log(self) -> bool:
        """Whether standard error is a file or pipe, or a terminal without a cursor to move."""
        return not self.console.is_interactive

    def print(self, text: str) -> None:
        """Print a line; rich flushes it."""
        # In a file, lines are not wrapped.
        self.console.print(text, markup=False, highlight=False, soft_wrap=self.is_log)

    def start_clock(self) -> None:
        """Print no progress for the next minute."""
        self._last_line_at = self._clock()

    def print_progress(self, text: str) -> None:
        """Print a line of progress if one is due; otherwise keep it for `print_last`."""
        self.keep(text)
        if self.is_due():
            self.print_last()

    def keep(self, text: str) -> None:
        """Keep a line of progress that a bar shows now for `print_last`."""
        self._unprinted = text

    def is_due(self) -> bool:
        """Return whether progress may be printed; if so, the next line is due in a minute."""
        if self._clock() - self._last_line_at < SECONDS_BETWEEN_LINES:
            return False
        self.start_clock()
        return True

    def print_last(self) -> None:
        """Print the last line of progress if it was not printed yet: where the run stopped."""
        if self._unprinted is not None:
            self.print(self._unprinted)
            self._unprinted = None


class TokenBar:
    """A bar with the number of tokens done and the tokens per second; hidden without a terminal."""

    def __init__(self, bar: Any, task: Any) -> None:
        self._bar = bar
        self._task = task

    def set_speed(self, num_new_tokens: int, *, read: str = "") -> None:
        """Show the speed of this run, which has done `num_new_tokens`."""
        if elapsed := self._bar.tasks[0].elapsed:
            self._bar.update(self._task, speed=num_new_tokens / elapsed, read=read)

    def update(self, **fields: Any) -> None:
        """Show new values: description, completed, total, tokens."""
        self._bar.update(self._task, **fields)


@contextmanager
def show_tokens(stage: str, *, total: int | None = None) -> Iterator[TokenBar]:
    """Show a bar on a terminal during the work inside."""
    from elmore.cli.bars import make_bar  # noqa: PLC0415  rich is slow to import

    with make_bar(
        "{task.fields[read]}",
        "{task.fields[tokens]:,} tokens",
        "{task.fields[speed]:,.0f} tokens/s",
    ) as bar:
        yield TokenBar(bar, bar.add_task(stage, total=total, read="", tokens=0, speed=0.0))


class EmbedProgress:
    """The share of a file that was read and embedded."""

    def __init__(self, text: str) -> None:
        path = Path(text)
        self._total = path.stat().st_size if text != "-" and path.is_file() else None
        self._bar: TokenBar | None = None
        self._num_bytes = 0
        self._num_tokens_before: int | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show a bar on a terminal during the work inside."""
        with show_tokens("embedding", total=self._total) as self._bar:
            yield

    def set_bytes(self, num_bytes: int) -> None:
        """Set how much of the file was read."""
        self._num_bytes = num_bytes

    def set_done(self, _num_sentences: int, num_tokens: int) -> None:
        """Move the bar; the work of an earlier run does not count towards the speed."""
        assert self._bar is not None
        if self._num_tokens_before is None:
            self._num_tokens_before = num_tokens
        self._bar.set_speed(num_tokens - self._num_tokens_before)
        self._bar.update(completed=self._num_bytes, tokens=num_tokens)


@contextmanager
def show_prepare() -> Iterator[Callable[["PrepareProgress"], None]]:
    """Show the preparation of a corpus on a terminal; call the yielded function to update it."""
    with show_tokens("reading") as bar:

        def move(done: "PrepareProgress") -> None:
            if done.stage == "reading":
                bar.set_speed(done.num_new_tokens, read=f"{done.num_done / 1e6:,.0f} MB")
            bar.update(
                description=done.stage,
                total=done.num_total,
                completed=done.num_done,
                tokens=done.num_tokens,
            )

        yield move


@contextmanager
def show_files() -> Iterator[Callable[["FilesProgress"], None]]:
    """Show how much of many files is embedded, over all workers; as lines without a terminal."""
    lines = LogLines()
    lines.start_clock()
    started = time.monotonic()
    with show_tokens("embedding") as bar:

        def move(done: "FilesProgress") -> None:
            parts = f"{done.done_shards:,} of {done.num_shards:,} parts"
            bar.set_speed(done.num_tokens, read=parts)
            bar.update(completed=done.done_bytes, total=done.num_bytes, tokens=done.num_tokens)
            if lines.is_log and lines.is_due():
                elapsed = time.monotonic() - started
                left = elapsed * (done.num_bytes - done.done_bytes) / max(done.done_bytes, 1)
                lines.print(
                    f"{parts}, {done.num_tokens:,} tokens, {done.num_tokens / elapsed:,.0f} "
                    f"tokens/s, {left / 60:,.0f} min left"
                )

        yield move


@contextmanager
def show_status(first: str) -> Iterator[Callable[[str], None]]:
    """Show the current stage and its time on a terminal; call the yielded function to update it."""
    from elmore.cli.bars import make_spinner  # noqa: PLC0415  rich is slow to import

    with make_spinner() as bar:
        task = bar.add_task(first, total=None)
        yield lambda text: bar.update(task, description=text)


@contextmanager
def printing_data_warnings() -> Iterator[None]:
    """Print each `DataWarning` once, and only in the first of several processes."""
    is_first = os.environ.get("RANK", "0") == "0"
    with warnings.catch_warnings():
        warnings.simplefilter("default" if is_first else "ignore", DataWarning)
        warnings.showwarning = partial(_print_warning, warnings.showwarning)
        yield


def _print_warning(
    others: Callable[..., None], message: Warning | str, category: type[Warning], *location: Any
) -> None:
    if issubclass(category, DataWarning):
        print(f"elmore: {message}", file=sys.stderr)
    else:
        others(message, category, *location)


@contextmanager
def report_interrupt(*, restart: bool = False, hint: str | None = None) -> Iterator[None]:
    """Print where a job stopped and what to do; exit with the status that shells use for a signal.

    The default `hint` says how to resume; `restart` is whether --restart was given.
    """
    try:
        yield
    except StoppedError as stop:
        stopped, number = f"stopped after step {stop.step}", stop.signal_number
    except KeyboardInterrupt:
        stopped, number = "stopped", int(signal.SIGINT)
    else:
        return
    print(f"elmore: {stopped}; {hint or resume_hint(restart=restart)}", file=sys.stderr)
    raise typer.Exit(128 + number)
