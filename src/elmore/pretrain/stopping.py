"""Stop at the end of a step when asked to by SIGINT or SIGTERM."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """The signal that asked the run to stop, if any has."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None


@contextmanager
def listening() -> Iterator[StopRequest]:
    """Take note of the first signal; a second SIGINT interrupts at once, as without us."""
    request = StopRequest()

    def note(number: int, frame: FrameType | None) -> None:
        if request.signal is not None and number == signal.SIGINT:
            signal.default_int_handler(number, frame)
        request.signal = signal.Signals(number)

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # only the main thread of a program may listen
        yield request
        return
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
