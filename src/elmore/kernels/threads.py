"""Run a few native calls at the same time.

Threads of our own, one for each direction of a biLM: they meet once a batch, where a pool that
divides every product meets thousands of times and waits for its slowest thread each time.
"""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from threading import Barrier, Lock

import torch

_lock = Lock()
_pool: ThreadPoolExecutor | None = None
_torch_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}


def run_together(*calls: Callable[[], None]) -> None:
    """Run all calls, at once if torch may use several threads; return when all are done."""
    if torch.get_num_threads() == 1 or len(calls) <= 1:
        for call in calls:
            call()
    else:
        _run_at_once(*calls)


def _run_at_once(*calls: Callable[[], None]) -> None:
    first, *others = calls
    pending = [_start(call) for call in others]
    try:
        first()
    finally:
        # The calls hold on to the memory that they write to, even if this wait is interrupted.
        errors = [future.exception() for future in pending]
    for error in errors:
        if error is not None:
            raise error


def _start(call: Callable[[], None]) -> "Future[None]":
    try:
        return _workers().submit(call)
    except RuntimeError:  # the interpreter is ending, and starts no more threads
        done: Future[None] = Future()
        call()
        done.set_result(None)
        return done


def run_together_in_torch(*calls: Callable[[], None]) -> None:
    """Run calls that compute with torch at once, torch's threads divided among them.

    Each sees the gradient and inference modes of the caller, which belong to a thread. So does
    autocast, with more to it: under it the calls run one after another.
    """
    num_threads = torch.get_num_threads()
    if num_threads == 1 or torch.is_autocast_enabled("cpu"):
        for call in calls:
            call()
        return
    is_inference, has_gradient = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    def run(call: Callable[[], None]) -> None:
        with torch.inference_mode(is_inference), torch.set_grad_enabled(has_gradient):
            call()

    workers = _torch_workers(len(calls), max(1, num_threads // len(calls)))
    try:
        pending = [workers.submit(run, call) for call in calls]
    except RuntimeError:  # the interpreter is ending, and starts no more threads
        for call in calls:
            call()
        return
    for future in pending:
        future.result()


def _torch_workers(number: int, num_threads_each: int) -> ThreadPoolExecutor:
    """Return threads that compute with so many threads of torch each.

    The number is set once, when a thread starts, since setting it also changes what threads that
    start later begin with; that is put right at once.
    """
    with _lock:
        key = number, num_threads_each
        if key not in _torch_pools:
            before = torch.get_num_threads()
            pool = ThreadPoolExecutor(
                number, "elmore-torch", torch.set_num_threads, (num_threads_each,)
            )
            meeting = Barrier(number)
            for future in [pool.submit(meeting.wait) for _ in range(number)]:
                future.result()
            torch.set_num_threads(before)
            _torch_pools[key] = pool
        return _torch_pools[key]


def split_evenly(number: int, *, least: int = 1) -> list[slice]:
    """Divide rows among as many threads as torch may use, at least so many for each.

    >>> split_evenly(3, least=5)
    [slice(0, 3, None)]
    >>> split_evenly(0)
    []
    """
    num_parts = min(torch.get_num_threads(), max(1, number // least), number)
    bounds = [number * part // num_parts for part in range(num_parts + 1)] if num_parts else []
    return [slice(start, end) for start, end in pairwise(bounds)]


def _workers() -> ThreadPoolExecutor:
    global _pool  # noqa: PLW0603  threads are a process's own, as is what they stand in
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="elmore")
        return _pool


def _begin_anew_after_fork() -> None:
    """Threads do not survive a fork, and a lock may have been held: the child makes its own.

    Torch's threads are gone as well, and the first call that wants them would wait for ever: the
    child computes with one.
    """
    global _pool, _lock
    _pool, _lock = None, Lock()
    _torch_pools.clear()
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew_after_fork)
