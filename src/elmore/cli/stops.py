"""What a command prints when a signal ends it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from elmore.jobs.stopping import StoppedError


@contextmanager
def report_interrupt(*, hint: str) -> Iterator[None]:
    """Print where a job stopped, and `hint`; exit with the status that shells use for a signal."""
    try:
        yield
    except StoppedError as stop:
        print(f"elmore: stopped after step {stop.step}; {hint}", file=sys.stderr)
        raise typer.Exit(128 + stop.signal_number) from None
    except KeyboardInterrupt:
        print(f"elmore: stopped; {hint}", file=sys.stderr)
        raise typer.Exit(130) from None
