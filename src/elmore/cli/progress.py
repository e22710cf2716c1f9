"""What long jobs show on standard error: a bar, or what is being done."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Progress:
    """Share of the file read, tokens per second, time elapsed and left."""

    def __init__(self, text: str) -> None:
        path = Path(text)
        self._total = path.stat().st_size if text != "-" and path.is_file() else None
        self._bar: Any = None
        self._task: Any = None
        self._num_bytes = 0
        self._num_tokens_before: int | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the bar while the work inside goes on, if there is a terminal to show it on."""
        from elmore.cli.bars import make_bar  # noqa: PLC0415  rich is slow to import

        fields = ("{task.fields[tokens]:,} tokens", "{task.fields[speed]:,.0f} tokens/s")
        with make_bar(*fields) as self._bar:
            self._task = self._bar.add_task("embedding", total=self._total, tokens=0, speed=0.0)
            yield

    def set_bytes(self, num_bytes: int) -> None:
        """Take note of how much of the file has been read."""
        self._num_bytes = num_bytes

    def set_done(self, _num_sentences: int, num_tokens: int) -> None:
        """Move the bar; what an earlier run has done does not count as speed."""
        if self._num_tokens_before is None:
            self._num_tokens_before = num_tokens
        elapsed = self._bar.tasks[0].elapsed or 0.0
        speed = (num_tokens - self._num_tokens_before) / elapsed if elapsed else 0.0
        self._bar.update(self._task, completed=self._num_bytes, tokens=num_tokens, speed=speed)


@contextmanager
def showing_status(first: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal what is being done and for how long; call what is yielded to update it."""
    from elmore.cli.bars import make_spinner  # noqa: PLC0415  rich is slow to import

    with make_spinner() as bar:
        task = bar.add_task(first, total=None)
        yield lambda text: bar.update(task, description=text)
