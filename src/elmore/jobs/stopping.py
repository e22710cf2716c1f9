"""Stop a job on SIGINT, SIGTERM or SIGHUP without losing its work."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

# Windows has no SIGHUP.
SIGNALS = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]


def resume_hint(*, restart: bool = False) -> str:
    """Return how to resume; a command with --restart would start over."""
    return f"rerun the same command{' without --restart' if restart else ''} to resume"


class StoppedError(Exception):
    """The job was stopped by a signal; there is a checkpoint of this step."""

    def __init__(self, *, step: int, signal_number: int) -> None:
        super().__init__(f"stopped after step {step}; {resume_hint()}")
        self.step = step
        self.signal_number = signal_number


class StopRequest:
    """The signal that asked the job to stop, if any."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None


@contextmanager
def listening() -> Iterator[StopRequest]:
    """Record signals instead of stopping; a second SIGINT interrupts at once."""
    request = StopRequest()

    def note(number: int, frame: FrameType | None) -> None:
        if request.signal is not None and number == signal.SIGINT:
            signal.default_int_handler(number, frame)
        request.signal = signal.Signals(number)

    with _handling(note):
        yield request


@contextmanager
def stopping_at_once(*, step: int) -> Iterator[None]:
    """Stop as soon as a signal arrives, for work without steps; a resumed job repeats the work."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise StoppedError(step=step, signal_number=number)

    with _handling(stop):
        yield


@contextmanager
def _handling(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {}
    try:
        for number in SIGNALS:
            # Under nohup, SIGHUP must stay ignored.
            is_ignored = signal.getsignal(number) is signal.SIG_IGN
            if not is_ignored or number in (signal.SIGINT, signal.SIGTERM):
                before[number] = signal.signal(number, handle)
    except ValueError:  # only the main thread can handle signals
        pass
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
