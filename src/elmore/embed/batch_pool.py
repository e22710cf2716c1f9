"""Threads that run batches at the same time, in a process that may fork in between."""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self, TypeVar

_Result = TypeVar("_Result")


class BatchPool:
    """A pool of threads; a forked child, which has none of its parent's threads, starts its own.

    Without that, a child that reads on in its parent's stream would wait for them for ever.
    """

    def __init__(self, num_threads: int) -> None:
        self._num_threads = num_threads
        self._start()

    def submit(self, call: Callable[[], _Result]) -> "Future[_Result]":
        """Run a call in one of the threads."""
        if self._process != os.getpid():
            self._start()
        return self._executor.submit(call)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._executor.shutdown()

    def _start(self) -> None:
        self._process = os.getpid()
        self._executor = ThreadPoolExecutor(self._num_threads, thread_name_prefix="elmore-batch")
