"""Threads that run batches at the same time; they are started once and serve every call."""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

_Result = TypeVar("_Result")

_lock = Lock()
_pools: dict[int, ThreadPoolExecutor] = {}


def submit(call: Callable[[], _Result], *, num_threads: int) -> "Future[_Result]":
    """Run a call in one of `num_threads` threads."""
    with _lock:
        if num_threads not in _pools:
            _pools[num_threads] = ThreadPoolExecutor(num_threads, thread_name_prefix="elmore-batch")
        pool = _pools[num_threads]
    return pool.submit(call)


def _reset_after_fork() -> None:
    """Start over in a forked child, which has none of its parent's threads.

    A child that reads on in its parent's stream would wait for them for ever.
    """
    global _lock  # noqa: PLW0603  threads are a process's own, as is what they wait for
    _lock = Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
