"""Thread pools that run batches in parallel; they are started once and shared by all calls."""

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
    """Drop the pools in a forked child, because threads do not survive a fork.

    A child that continues its parent's stream would wait for them forever.
    """
    global _lock  # noqa: PLW0603  one set of pools per process
    _lock = Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
