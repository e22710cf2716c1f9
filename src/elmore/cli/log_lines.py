"""Lines on standard error, each written out at once; progress in a log at most once a minute."""

import math
import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

# In a file, such as under nohup, nothing can be overwritten: progress gets a line no more often.
SECONDS_BETWEEN_LINES = 60.0


class LogLines:
    """Prints messages as they come, and progress where no bar shows it."""

    def __init__(
        self, console: "Console | None" = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._given = console
        self._clock = clock
        self._last_line_at = -math.inf
        self._unprinted: str | None = None

    @cached_property
    def console(self) -> "Console":
        """Where the lines go."""
        from elmore.cli.bars import make_console  # noqa: PLC0415  rich is slow to import

        return self._given or make_console()

    @property
    def is_log(self) -> bool:
        """Whether standard error is a file or pipe, or a terminal without a cursor to move."""
        return not self.console.is_interactive

    def print(self, text: str) -> None:
        """Print a line; rich flushes it."""
        # Lines of a file have no width to be broken at.
        self.console.print(text, markup=False, highlight=False, soft_wrap=self.is_log)

    def start_clock(self) -> None:
        """Print no progress for the next minute."""
        self._last_line_at = self._clock()

    def print_progress(self, text: str) -> None:
        """Print a line of progress if one is due; else keep it for `print_last`."""
        self.keep(text)
        if self.is_due():
            self.print_last()

    def keep(self, text: str) -> None:
        """Keep a line of progress, which a bar shows now, for `print_last`."""
        self._unprinted = text

    def is_due(self) -> bool:
        """Tell whether progress may be printed; if so, the next is due in a minute."""
        if self._clock() - self._last_line_at < SECONDS_BETWEEN_LINES:
            return False
        self.start_clock()
        return True

    def print_last(self) -> None:
        """Print the last progress if it was not printed yet: where the run stopped."""
        if self._unprinted is not None:
            self.print(self._unprinted)
            self._unprinted = None
