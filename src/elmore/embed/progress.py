"""A progress bar for calls from Python, in a terminal or a notebook."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def show_progress(num_sentences: int | None, *, is_shown: bool) -> Iterator[Callable[[int], None]]:
    """Show how many sentences are done; call the result with the number of new ones.

    `num_sentences` is the total, if it is known.
    """
    if not is_shown:
        yield lambda _number: None
        return
    from rich import progress  # noqa: PLC0415  most calls show nothing

    with progress.Progress(
        progress.TextColumn("embedding"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("sentences"),
        progress.TimeElapsedColumn(),
        progress.TextColumn("elapsed,"),
        progress.TimeRemainingColumn(),
        progress.TextColumn("left"),
    ) as bar:
        task = bar.add_task("", total=num_sentences)
        yield lambda number: bar.advance(task, number)
