"""A thread that runs on another core than the thread that it helps.

The system likes to wake up a thread on the core of the thread that woke it. If other programs use
the other cores, both then take turns on one core: a sentence took 3.3 instead of 2.0 ms on two
cores of which one was busy.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class Helper:
    """One thread; it may run anywhere but on the core of the caller."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "elmore-helper")
        self._id: int | None = None
        self._cpus: set[int] = set()

    def start(self, call: Callable[[], None], *, beside: int | None) -> "Future[None]":
        """Start a call beside the core of the caller."""
        if self._id is None:
            self._id = self._thread.submit(threading.get_native_id).result()
        if beside is not None:
            self._avoid(beside)
        return self._thread.submit(call)

    def _avoid(self, cpu: int) -> None:
        assert self._id is not None
        cpus = os.sched_getaffinity(0) - {cpu}
        if not cpus or cpus == self._cpus:
            return
        try:
            os.sched_setaffinity(self._id, cpus)
        except OSError:  # not allowed here; it works without
            return
        self._cpus = cpus


def _find_current_cpu() -> Callable[[], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    function = getattr(ctypes.CDLL(None), "sched_getcpu", None)
    if function is not None:
        function.argtypes, function.restype = [], ctypes.c_int
    return function


_sched_getcpu = _find_current_cpu()


def current_cpu() -> int | None:
    """Return the core that this thread runs on; None if the system does not tell."""
    cpu = -1 if _sched_getcpu is None else _sched_getcpu()
    return None if cpu < 0 else cpu
