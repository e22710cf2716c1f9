"""What a command says when a signal ends it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def telling_of_stops(*, otherwise: str) -> Iterator[None]:
    """Print where a training stopped, or `otherwise` if that is not known; exit as shells do."""
    from elmore.jobs.stopping import StoppedError  # noqa: PLC0415  brings torch

    try:
        yield
    except StoppedError as stop:
        print(f"elmore: {stop}", file=sys.stderr)
        raise typer.Exit(128 + stop.signal_number) from None
    except KeyboardInterrupt:
        print(f"elmore: stopped; {otherwise}", file=sys.stderr)
        raise typer.Exit(130) from None


def how_to_go_on(*, restart: bool) -> str:
    """Return what to do after a stop: with --restart, what is trained would be trained anew."""
    return f"give the same command{' without --restart' if restart else ''} to go on"
