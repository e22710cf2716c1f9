"""A queue and one thread that computes what is in it, several requests at once.

There is no waiting window: an idle lane starts a request at once, and whatever arrives in the
meantime is the next batch. All methods are called in the event loop; only `run` is called in the
lane's thread.
"""

import asyncio
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

_ANSWERED_AT_ONCE = 16
# What a finished request returns: the parts of its body, or an error.
Outcome = list[bytes] | Exception


class Work(Protocol):
    """What a lane computes."""

    @property
    def key(self) -> Hashable:
        """Works with equal keys can be computed together; None means alone."""

    @property
    def num_tokens(self) -> int:
        """The tokens that it counts as."""


@dataclass(eq=False)
class _Job:
    work: Work
    future: "asyncio.Future[list[bytes]]"


@dataclass(frozen=True, kw_only=True)
class BatchReport:
    """What a lane computed."""

    num_requests: int
    num_tokens: int
    seconds: float


class Lane:
    """Computes works in order; those with the key of the first one share its batch."""

    def __init__(
        self,
        run: Callable[[Sequence[Work]], Sequence[Outcome]],
        *,
        batch_tokens: int,
        start_thread: Callable[[], None] | None = None,
        on_batch: Callable[[BatchReport], None] = lambda _: None,
    ) -> None:
        self._run = run
        self._batch_tokens = batch_tokens
        self._on_batch = on_batch
        self._waiting: deque[_Job] = deque()
        self._is_busy = False
        self._executor = ThreadPoolExecutor(1, "elmore-lane", initializer=start_thread)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is waiting or being computed."""
        return not self._is_busy and not self._waiting

    def submit(self, work: Work) -> "asyncio.Future[list[bytes]]":
        """Queue a work; cancel the future to remove it from the queue."""
        future: asyncio.Future[list[bytes]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Job(work, future))
        if not self._is_busy:
            self._start_batch()
        return future

    def start(self, first: Callable[[], object] = bool) -> None:
        """Start the thread now, rather than with the first work, and let it make a first call."""
        self._executor.submit(first).result()

    def close(self) -> None:
        """Start nothing more; what is being computed is not waited for."""
        self._waiting.clear()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _start_batch(self) -> None:
        batch = self._take_batch()
        self._is_busy = bool(batch)
        if batch:
            started = time.perf_counter()
            running = asyncio.get_running_loop().run_in_executor(
                self._executor, self._run, [job.work for job in batch]
            )
            running.add_done_callback(lambda done: self._finish(batch, done, started))

    def _take_batch(self) -> list[_Job]:
        """Remove from the queue what is computed next; requests of clients that left are dropped.

        The first work is always taken, so that none waits forever.
        """
        batch: list[_Job] = []
        others: deque[_Job] = deque()
        num_tokens = 0
        while self._waiting and (not batch or num_tokens < self._batch_tokens):
            job = self._waiting.popleft()
            if job.future.done():
                continue
            key = job.work.key
            fits = num_tokens + job.work.num_tokens <= self._batch_tokens
            shares = bool(batch) and key is not None and key == batch[0].work.key and fits
            if not batch or shares:
                batch.append(job)
                num_tokens += job.work.num_tokens
            else:
                others.append(job)
        self._waiting.extendleft(reversed(others))
        return batch

    def _finish(
        self, batch: list[_Job], done: "asyncio.Future[Sequence[Outcome]]", started: float
    ) -> None:
        self._start_batch()  # first, so that the thread does not wait for the answers
        if done.cancelled():
            return
        outcomes = [done.exception()] * len(batch) if done.exception() else done.result()
        _deliver(deque(zip(batch, outcomes, strict=True)))
        self._on_batch(
            BatchReport(
                num_requests=len(batch),
                num_tokens=sum(job.work.num_tokens for job in batch),
                seconds=time.perf_counter() - started,
            )
        )


def _deliver(finished: "deque[tuple[_Job, Outcome | BaseException | None]]") -> None:
    """Answer some requests now and others later, so that arriving ones need not wait for all."""
    for _ in range(min(_ANSWERED_AT_ONCE, len(finished))):
        job, outcome = finished.popleft()
        if job.future.done():
            continue
        if isinstance(outcome, BaseException):
            job.future.set_exception(outcome)
        else:
            assert outcome is not None
            job.future.set_result(outcome)
    if finished:
        asyncio.get_running_loop().call_soon(_deliver, finished)


def lower_priority(niceness: int) -> None:
    """Let the calling thread, and those that it starts, give way to the others."""
    if sys.platform == "linux":  # where a thread has a priority of its own
        with suppress(OSError):  # nothing depends on it
            thread = threading.get_native_id()
            current = os.getpriority(os.PRIO_PROCESS, thread)
            os.setpriority(os.PRIO_PROCESS, thread, current + niceness)
