"""What keeps `make quick` quick: a test without the mark `slow` starts no process and ends soon."""

import multiprocessing.process
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

# Fifty times what most tests take. CPU time, so that a busy machine makes no difference.
MAX_SECONDS = 3.0
ADVICE = "mark the test as slow, because `make quick` runs all others"
_STARTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"})

_is_quick = False


def _refuse_processes(event: str, arguments: tuple[object, ...]) -> None:
    # scikit-learn counts the cores with lscpu when it is first used.
    counts_cores = event == "subprocess.Popen" and arguments[0] == "lscpu"
    if _is_quick and event in _STARTS and not counts_cores:
        raise AssertionError(f"a test started a process ({event}); {ADVICE}")


def _refuse_start(_process: object) -> None:
    raise AssertionError(f"a test started a process (multiprocessing); {ADVICE}")


sys.addaudithook(_refuse_processes)


@contextmanager
def no_processes() -> Iterator[None]:
    """Fail a test that starts a process, in the test itself or in its fixtures."""
    global _is_quick  # noqa: PLW0603  an audit hook cannot be removed
    _is_quick = True
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(multiprocessing.process.BaseProcess, "start", _refuse_start)
            yield
    finally:
        _is_quick = False


@contextmanager
def bounded_time(max_seconds: float = MAX_SECONDS) -> Iterator[None]:
    """Fail a test that computes for too long."""
    start = time.process_time()
    yield
    seconds = time.process_time() - start
    assert seconds <= max_seconds, f"a test took {seconds:.1f} s of CPU time; {ADVICE}"
