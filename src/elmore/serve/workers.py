"""Several server processes that share one port."""

import multiprocessing
import os
import queue
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.context import SpawnProcess
from typing import Any

from elmore import ElmoreError
from elmore.serve.metrics import SHARED_FOLDER
from elmore.serve.process import run_process
from elmore.serve.service import Service
from elmore.serve.settings import ServeSettings

_CHECK_SECONDS = 0.2


def run_workers(
    settings: ServeSettings, listener: socket.socket, *, on_ready: Callable[[], None]
) -> None:
    """Serve with several processes until a signal comes; a process that dies is replaced."""
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, _count_cores() // settings.workers)))
    with tempfile.TemporaryDirectory(prefix="elmore-metrics-") as folder:
        os.environ[SHARED_FOLDER] = folder
        _Supervisor(settings, listener, on_ready=on_ready).run()


class _Supervisor:
    def __init__(
        self, settings: ServeSettings, listener: socket.socket, *, on_ready: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._listener = listener
        self._on_ready = on_ready
        self._context = multiprocessing.get_context("spawn")
        self._reports: Any = self._context.Queue()
        self._is_stopping = False
        self._was_ready = False

    def run(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        workers = [self._start() for _ in range(self._settings.workers)]
        failure = None
        ready: set[int] = set()
        while not self._is_stopping and failure is None:
            failure = self._read_report(ready)
            if not self._was_ready and len(ready) == len(workers):
                self._was_ready = True
                self._on_ready()
            for index, worker in enumerate(workers):
                if not worker.is_alive() and not self._is_stopping and failure is None:
                    failure = self._read_report(ready)
                    if not self._was_ready:
                        failure = failure or "a worker died while starting; see the log above"
                        break
                    print("elmore: a worker died; starting another", file=sys.stderr)
                    workers[index] = self._start()
        self._end(workers)
        if failure is not None:
            raise ElmoreError(failure)

    def _start(self) -> SpawnProcess:
        worker = self._context.Process(
            target=_run_worker, args=(self._settings, self._listener, self._reports)
        )
        worker.start()
        return worker

    def _stop(self, _number: int, _frame: object) -> None:
        self._is_stopping = True

    def _read_report(self, ready: set[int]) -> str | None:
        """Note a worker that is ready; return what kept one from starting."""
        try:
            worker, failure = self._reports.get(timeout=_CHECK_SECONDS)
        except queue.Empty:
            return None
        ready.add(worker)
        return failure

    def _end(self, workers: list[SpawnProcess]) -> None:
        """Let the workers finish; end those that do not within the grace period."""
        for worker in workers:
            worker.terminate()
        deadline = time.monotonic() + self._settings.grace_seconds + 5
        for worker in workers:
            worker.join(max(0.0, deadline - time.monotonic()))
            if worker.is_alive():
                worker.kill()
                worker.join()


def _run_worker(settings: ServeSettings, listener: socket.socket, reports: Any) -> None:
    def report(_service: Service) -> None:
        reports.put((os.getpid(), None))

    try:
        run_process(settings, listener, on_ready=report)
    except ElmoreError as error:
        reports.put((os.getpid(), str(error)))


def _count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
