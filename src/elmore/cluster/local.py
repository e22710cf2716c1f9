"""Engine `local`: worker processes on this machine, one shard at a time each.

A worker that dies is replaced and its shard is embedded again; workers end when their parent does.
"""

import os
import signal
import sys
import threading
import traceback
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import Any

from elmore import ElmoreError, FilesJob, TextShard
from elmore.cluster.progress import WorkerProgress

# A shard that ends its worker this often is bad: it probably needs more memory than there is.
MAX_DEATHS = 5

Connection = Any  # the class of pipes depends on the operating system


def run_locally(
    job: FilesJob, shards: Sequence[TextShard], *, num_workers: int, progress: WorkerProgress
) -> None:
    """Embed shards in worker processes; note the bad ones in the job."""
    pool = _Pool(job, progress)
    try:
        waiting = deque(shards)
        while waiting or pool.num_busy:
            while waiting and pool.num_busy < num_workers:
                pool.give(waiting.popleft())
            waiting.extendleft(pool.receive())
    finally:
        pool.stop()


@dataclass(kw_only=True)
class _Worker:
    process: Any
    connection: Connection
    shard: TextShard | None = None


class _Pool:
    def __init__(self, job: FilesJob, progress: WorkerProgress) -> None:
        self._job = job
        self._progress = progress
        # fork would copy locks held by other threads, such as torch's.
        self._context = get_context("spawn")
        self._workers: list[_Worker] = []
        self._num_deaths: Counter[int] = Counter()

    @property
    def num_busy(self) -> int:
        return sum(worker.shard is not None for worker in self._workers)

    def give(self, shard: TextShard) -> None:
        """Send a shard to a free worker, or to a new one."""
        free = (worker for worker in self._workers if worker.shard is None)
        worker = next(free, None) or self._start()
        worker.shard = shard
        with suppress(OSError):  # if it has died, `receive` notices
            worker.connection.send(shard)

    def receive(self) -> list[TextShard]:
        """Wait for news; return the shards of workers that have died."""
        busy = {worker.connection: worker for worker in self._workers if worker.shard is not None}
        lost = []
        ready: list[Connection] = wait(list(busy))
        for connection in ready:
            worker = busy[connection]
            assert worker.shard is not None
            try:
                kind, *values = connection.recv()
            except (EOFError, OSError):
                lost += self._bury(worker)
                continue
            match kind:
                case "tokens":
                    self._progress.add(worker.shard, *values)
                case "done":
                    if values[0] is not None:
                        self._job.note_bad(worker.shard, values[0])
                    self._progress.finish(worker.shard)
                    worker.shard = None
                case "mistake":
                    raise ElmoreError(values[0])
                case _:
                    raise RuntimeError(f"a worker failed:\n{values[0]}")
        return lost

    def stop(self) -> None:
        """End the workers, busy or not."""
        for worker in self._workers:
            worker.connection.close()
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join()

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self._job.worker), daemon=True)
        process.start()
        theirs.close()
        worker = _Worker(process=process, connection=ours)
        self._workers.append(worker)
        return worker

    def _bury(self, worker: _Worker) -> list[TextShard]:
        """Remove a worker that has died; return its shard, unless it has ended too many workers."""
        worker.connection.close()
        worker.process.join()
        self._workers.remove(worker)
        assert worker.shard is not None
        self._progress.lose(worker.shard)
        self._num_deaths[worker.shard.number] += 1
        if self._num_deaths[worker.shard.number] < MAX_DEATHS:
            return [worker.shard]
        self._job.note_bad(
            worker.shard,
            f"{MAX_DEATHS} worker processes ended while they embedded it (the last with status "
            f"{worker.process.exitcode}), perhaps out of memory; use fewer workers",
        )
        self._progress.finish(worker.shard)
        return []


def _serve(connection: Connection, worker: Any) -> None:
    """Embed shards until the parent closes the pipe; runs in a worker process."""
    # Ctrl-C reaches every process of a terminal; workers are ended by their parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            shard = connection.recv()
            connection.send(_embed(connection, worker, shard))
        except (EOFError, OSError):
            return


def _embed(connection: Connection, worker: Any, shard: TextShard) -> tuple[Any, ...]:
    try:
        reason = worker.try_run(
            shard, on_tokens=lambda *numbers: connection.send(("tokens", *numbers))
        )
    except BrokenPipeError:
        raise
    except ElmoreError as error:
        return ("mistake", str(error))
    except Exception:
        return ("failure", traceback.format_exc())
    return ("done", reason)


def _end_with_parent() -> None:
    """Exit as soon as the parent process is gone, even if it was killed."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        sys.stderr.flush()
        os._exit(1)
