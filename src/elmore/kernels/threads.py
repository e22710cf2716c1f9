"""Run a few native calls at the same time.

Threads of our own, one for each direction of a biLM: they meet once a batch, where a pool that
divides every product meets thousands of times and waits for its slowest thread each time.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from threading import Lock

import torch

_lock = Lock()
_pool: ThreadPoolExecutor | None = None


def run_together(*calls: Callable[[], None]) -> None:
    """Run all calls, at once if torch may use several threads; return when all are done."""
    if torch.get_num_threads() == 1 or len(calls) == 1:
        for call in calls:
            call()
    else:
        _run_at_once(*calls)


def _run_at_once(*calls: Callable[[], None]) -> None:
    first, *others = calls
    pending = [_workers().submit(call) for call in others]
    try:
        first()
    finally:
        # Memory that the others write to must not go away under them.
        errors = [future.exception() for future in pending]
    for error in errors:
        if error is not None:
            raise error


def run_together_in_torch(*calls: Callable[[], None]) -> None:
    """Run calls that compute with torch at once, torch's threads divided among them.

    Each sees the gradient and inference modes of the caller, which belong to a thread.
    """
    num_threads = torch.get_num_threads()
    if num_threads == 1:
        run_together(*calls)
        return
    num_each = max(1, num_threads // len(calls))
    is_inference, has_gradient = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    def run(call: Callable[[], None]) -> None:
        torch.set_num_threads(num_each)  # of this thread
        with torch.inference_mode(is_inference), torch.set_grad_enabled(has_gradient):
            call()

    try:
        _run_at_once(*(partial(run, call) for call in calls))
    finally:
        torch.set_num_threads(num_threads)


def split_evenly(number: int) -> list[slice]:
    """Divide rows among as many threads as torch may use.

    >>> split_evenly(0)
    []
    """
    num_parts = min(torch.get_num_threads(), number)
    bounds = [number * part // num_parts for part in range(num_parts + 1)] if num_parts else []
    return [slice(start, end) for start, end in pairwise(bounds)]


def _workers() -> ThreadPoolExecutor:
    global _pool  # noqa: PLW0603  threads are a process's own, as is what they stand in
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="elmore")
        return _pool


def _begin_anew_after_fork() -> None:
    """Threads do not survive a fork, and a lock may have been held: the child makes its own."""
    global _pool, _lock
    _pool, _lock = None, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew_after_fork)
