"""Progress bars on standard error.

This imports rich, which takes time; import it where a bar is made.
"""

import sys
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text


class TimeColumn(ProgressColumn):
    """`0:00:46 elapsed, 0:01:10 left`; the second part is left out while it is unknown."""

    def __init__(self, *, left: str = "left") -> None:
        super().__init__(Column(no_wrap=True))  # on a narrow terminal the bar gets shorter
        self._left = left

    def render(self, task: Task) -> Text:
        """Return both times of a task."""
        elapsed = task.finished_time if task.finished else task.elapsed
        text = f"{_write(elapsed or 0.0)} elapsed"
        if task.total is not None and task.time_remaining is not None:
            text += f", {_write(task.time_remaining)} {self._left}"
        return Text(text)


def make_console() -> Console:
    """Return a console on standard error."""
    # Explicit, because with FORCE_COLOR rich would treat a file as a terminal.
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    return Console(stderr=True, force_terminal=is_terminal)


def make_bar(*fields: str, left: str = "left", console: Console | None = None) -> Progress:
    """Return a bar: description, bar, `fields` (formats of a task), times.

    It is hidden where there is no terminal.
    """
    columns = [TextColumn("{task.description}"), BarColumn(), *map(TextColumn, fields)]
    return _make(*columns, TimeColumn(left=left), console=console)


def make_spinner(*, console: Console | None = None) -> Progress:
    """Return a spinner with a description and the time elapsed, for work of unknown length."""
    return _make(SpinnerColumn(), TextColumn("{task.description}"), TimeColumn(), console=console)


def _make(*columns: ProgressColumn, console: Console | None) -> Progress:
    console = console or make_console()
    return Progress(*columns, console=console, transient=True, disable=not console.is_interactive)


def _write(seconds: float) -> str:
    return str(timedelta(seconds=max(0, int(seconds))))
