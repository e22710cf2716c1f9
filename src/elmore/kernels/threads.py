"""Run a few native calls in parallel.

We use our own threads, one per direction of a biLM. They synchronize once per batch. A pool that
splits every matrix product synchronizes thousands of times, each time waiting for its slowest
thread.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from threading import Barrier, Lock

import torch

from elmore.kernels.helper import Helper, current_cpu

_lock = Lock()
_pool: ThreadPoolExecutor | None = None
_helpers: list[Helper] = []
_helpers_are_free = Lock()
_queues: list[ThreadPoolExecutor] = []
_queues_are_free = Lock()
_torch_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}


class _Native(threading.local):
    number: int | None = None


_native = _Native()


def run_together(*calls: Callable[[], None]) -> None:
    """Run all calls, in parallel if several threads may be used; return when all are done."""
    if count_threads() == 1 or len(calls) <= 1:
        for call in calls:
            call()
    else:
        _run_in_parallel(*calls)


def count_threads() -> int:
    """Return how many threads native calls may use: as many as torch, if nothing else is set."""
    return _native.number or torch.get_num_threads()


@contextmanager
def for_native_calls() -> Iterator[None]:
    """Leave all threads to native calls; torch computes in one thread.

    When torch's threads have nothing to do, they spin for a while, on a core that a native call
    needs. So if native calls do most of the work, it is faster without them.
    """
    before, number = _native.number, count_threads()
    num_torch_threads, process = torch.get_num_threads(), os.getpid()
    _native.number = number
    torch.set_num_threads(1)
    try:
        yield
    finally:
        if os.getpid() == process:  # a forked child has no other threads of torch
            torch.set_num_threads(num_torch_threads)
            _native.number = before


def _run_in_parallel(*calls: Callable[[], None]) -> None:
    first, *others = calls
    # With several callers at once, the system has enough threads to fill the cores.
    is_alone = _helpers_are_free.acquire(blocking=False)
    try:
        cpu = current_cpu() if is_alone else None
        pending = [
            (_start(_workers() if cpu is None else _find_helper(number), call, cpu=cpu), call)
            for number, call in enumerate(others)
        ]
        try:
            first()
            # If other programs keep the cores busy, a call may still be waiting for a thread to
            # wake up. Then this thread is sooner.
            for future, call in pending:
                if future.cancel():
                    call()
        finally:
            # Even if this wait is interrupted, the calls keep the memory they write to alive.
            errors = [future.exception() for future, _ in pending if not future.cancelled()]
    finally:
        if is_alone:
            _helpers_are_free.release()
    for error in errors:
        if error is not None:
            raise error


class Queues:
    """Threads with a queue each; calls that are started go into one queue each.

    With `run_together`, the threads wait for each other after every group of calls. Here each
    thread continues with the next group, so all stay busy even if other threads take time from one.
    """

    def start(self, *calls: Callable[[], None]) -> "Started":
        """Add a call to each queue."""
        with _lock:
            while len(_queues) < len(calls):
                _queues.append(ThreadPoolExecutor(1, f"elmore-queue-{len(_queues)}"))
            threads = _queues[: len(calls)]
        return Started(
            calls, [_start(thread, call) for thread, call in zip(threads, calls, strict=True)]
        )


class Started:
    """Calls that run in other threads."""

    def __init__(
        self, calls: Sequence[Callable[[], None]], futures: "Sequence[Future[None]]"
    ) -> None:
        self._calls = calls
        self._futures = futures
        self._process = os.getpid()

    def wait(self) -> None:
        """Return when all calls are done, or raise the error of one."""
        if os.getpid() != self._process:  # a forked child does not have the threads
            for call in self._calls:
                call()
            return
        errors = [future.exception() for future in self._futures]
        for error in errors:
            if error is not None:
                raise error

    def cancel(self) -> None:
        """Do not begin calls that have not begun yet."""
        if os.getpid() != self._process:  # whose locks a forked child may find taken forever
            return
        for future in self._futures:
            future.cancel()


@contextmanager
def reserve_queues() -> Iterator[Queues | None]:
    """Give the queues to one caller at a time; None if they are taken, or with a single thread.

    Several callers at once fill the cores with `run_together` already.
    """
    lock = _queues_are_free  # a forked child has another one
    if count_threads() == 1 or not lock.acquire(blocking=False):
        yield None
        return
    try:
        yield Queues()
    finally:
        lock.release()


def _start(
    thread: Helper | ThreadPoolExecutor, call: Callable[[], None], *, cpu: int | None = None
) -> "Future[None]":
    try:
        if isinstance(thread, Helper):
            return thread.start(call, beside=cpu)
        return thread.submit(call)
    except RuntimeError:  # at interpreter exit no thread can be started
        done: Future[None] = Future()
        call()
        done.set_result(None)
        return done


def _find_helper(number: int) -> Helper:
    while len(_helpers) <= number:
        _helpers.append(Helper())
    return _helpers[number]


def run_together_in_torch(*calls: Callable[[], None]) -> None:
    """Run calls that use torch in parallel, dividing torch's threads among them.

    Gradient and inference mode are per thread, so each call gets the caller's. Autocast is also
    per thread but has more state: under autocast the calls run one after another.
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
    except RuntimeError:  # at interpreter exit no thread can be started
        for call in calls:
            call()
        return
    for future in pending:
        future.result()


def _torch_workers(number: int, num_threads_each: int) -> ThreadPoolExecutor:
    """Return a pool of `number` threads that each use `num_threads_each` threads of torch.

    The count is set once, when a thread starts. Setting it also changes the default for threads
    that start later, so the default is restored right away.
    """
    with _lock:
        key = number, num_threads_each
        if key not in _torch_pools:
            before = torch.get_num_threads()
            pool = ThreadPoolExecutor(
                number, "elmore-torch", torch.set_num_threads, (num_threads_each,)
            )
            barrier = Barrier(number)
            for future in [pool.submit(barrier.wait) for _ in range(number)]:
                future.result()
            torch.set_num_threads(before)
            _torch_pools[key] = pool
        return _torch_pools[key]


def split_evenly(number: int, *, least: int = 1) -> list[slice]:
    """Split rows among the threads that may be used, at least `least` rows per thread.

    >>> split_evenly(3, least=5)
    [slice(0, 3, None)]
    >>> split_evenly(0)
    []
    """
    num_parts = min(count_threads(), max(1, number // least), number)
    bounds = [number * part // num_parts for part in range(num_parts + 1)] if num_parts else []
    return [slice(start, end) for start, end in pairwise(bounds)]


def _workers() -> ThreadPoolExecutor:
    global _pool  # noqa: PLW0603  one pool per process
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="elmore")
        return _pool


def _reset_after_fork() -> None:
    """Drop pools and lock in a forked child: threads do not survive, and the lock may be held.

    Torch's threads are gone too, and the first call that needs them would wait forever. So the
    child uses one thread.
    """
    global _pool, _lock, _helpers_are_free, _queues_are_free
    _pool, _lock, _helpers_are_free, _queues_are_free = None, Lock(), Lock(), Lock()
    _helpers.clear()
    _queues.clear()
    _torch_pools.clear()
    _native.number = None
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
