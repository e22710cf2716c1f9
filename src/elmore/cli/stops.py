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
        print(f"elmore: {stop}; {hint}", file=sys.stderr)
        raise typer.Exit(128 + stop.signal_number) from None
    except KeyboardInterrupt:
        print(f"elmore: stopped; {hint}", file=sys.stderr)
        raise typer.Exit(130) from None


def resume_hint(*, restart: bool) -> str:
    """Return how to resume; with --restart the job would start over."""
    return f"rerun the same command{' without --restart' if restart else ''} to resume"
