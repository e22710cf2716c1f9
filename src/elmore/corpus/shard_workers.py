"""Turn chunks of text into shards, in several processes that share only the folder."""

import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from elmore.corpus.folder import shard_path
from elmore.corpus.settings import BadBytesPolicy
from elmore.corpus.shards import ShardFacts, write_shard
from elmore.corpus.text_chunks import Chunk
from elmore.errors import DataError, DataWarning, ElmoreError
from elmore.text.files import BadBytes, read_excerpt
from elmore.text.language import Language

MAX_BAD_PLACES = 5

# The class of pipes depends on the operating system.
Connection = Any


@dataclass(frozen=True, kw_only=True)
class ShardMaker:
    """Reads chunks and writes their shards."""

    folder: Path
    language: Language
    bad_bytes: BadBytesPolicy

    def make(self, chunk: Chunk) -> ShardFacts:
        """Split the text into sentences and tokens, and write them to a shard."""
        bad = _BadBytesNotes()
        inputs: list[list[int]] = []
        facts = {
            "inputs": inputs,
            "is_heldout": chunk.is_heldout,
            "source_bytes": chunk.num_bytes,
            "source_crc32": chunk.checksum,
        }
        path = shard_path(self.folder, chunk.number)
        return write_shard(
            path, self._read(chunk, bad, inputs), facts=lambda: {**facts, **asdict(bad)}
        )

    def _read(
        self, chunk: Chunk, bad: "_BadBytesNotes", inputs: list[list[int]]
    ) -> Iterator[list[str]]:
        """Yield the sentences; one or more empty ones end a document.

        Appends the number of each input and of its first sentence to `inputs`.
        """
        num_sentences = 0
        for part in chunk.excerpts:
            inputs.append([part.source_number, num_sentences])
            if part.excerpt.starts_file:
                yield []
            note = partial(bad.note, part.source_number)
            for sentence in read_excerpt(
                part.excerpt,
                form=part.form,
                language=self.language,
                on_bad_bytes=note if self.bad_bytes is BadBytesPolicy.REPLACE else None,
            ):
                num_sentences += bool(sentence)
                yield sentence


@dataclass(kw_only=True)
class _BadBytesNotes:
    """Counts replaced bytes, and keeps the first few positions."""

    num_bad: int = 0
    bad_places: list[list[int]] = field(default_factory=list)

    def note(self, source_number: int, bad: BadBytes) -> None:
        """Count replaced bytes, and keep their position if it is among the first."""
        self.num_bad += bad.count
        if len(self.bad_places) < MAX_BAD_PLACES:
            self.bad_places.append([source_number, bad.line_number, bad.byte])


def count_cores() -> int:
    """Return how many processes can run at once."""
    if hasattr(os, "sched_getaffinity"):  # fewer than the machine has, in a container
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def make_shards(
    chunks: Iterable[Chunk], maker: ShardMaker, *, num_processes: int
) -> Iterator[tuple[Chunk, ShardFacts]]:
    """Yield each chunk with the facts of its shard, as they are finished."""
    if num_processes == 1:
        for chunk in chunks:
            yield chunk, maker.make(chunk)
        return
    pool = _Pool(maker, num_processes=num_processes)
    try:
        for chunk in chunks:
            yield from pool.give(chunk)
        yield from pool.finish()
    finally:
        pool.stop()


class _Pool:
    """Worker processes, each started when there is a chunk but no free worker.

    Each has its own pipe and shares nothing else: a worker that dies is noticed at once, and
    workers end when their parent process dies.
    """

    def __init__(self, maker: ShardMaker, *, num_processes: int) -> None:
        self._maker = maker
        self._num_processes = num_processes
        # fork would copy locks held by other threads, such as torch's.
        self._context = get_context("spawn")
        self._processes: dict[Connection, Any] = {}
        self._free: list[Connection] = []
        self._busy: dict[Connection, Chunk] = {}

    def give(self, chunk: Chunk) -> Iterator[tuple[Chunk, ShardFacts]]:
        """Send a chunk to a worker; if all are busy, first wait for one and yield its result."""
        if not self._free and len(self._processes) < self._num_processes:
            self._free.append(self._start())
        while not self._free:
            yield from self._receive()
        connection = self._free.pop()
        self._busy[connection] = chunk
        try:
            connection.send(chunk)
        except OSError:
            raise self._make_worker_error(connection) from None

    def finish(self) -> Iterator[tuple[Chunk, ShardFacts]]:
        """Yield the remaining results."""
        while self._busy:
            yield from self._receive()

    def stop(self) -> None:
        """End the workers, busy or not."""
        for connection, process in self._processes.items():
            connection.close()
            process.terminate()
        for process in self._processes.values():
            process.join()

    def _start(self) -> Connection:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self._maker), daemon=True)
        process.start()
        theirs.close()
        self._processes[ours] = process
        return ours

    def _receive(self) -> Iterator[tuple[Chunk, ShardFacts]]:
        """Wait for one or more workers; of several errors, raise that of the earliest chunk."""
        mistakes: list[tuple[int, Exception]] = []
        while self._busy:
            for connection in wait(list(self._busy)):
                chunk, result = self._take(connection)
                if isinstance(result, ShardFacts):
                    self._free.append(connection)
                    yield chunk, result
                else:
                    mistakes.append((chunk.number, result))
            if not mistakes:
                return
        raise min(mistakes, key=lambda mistake: mistake[0])[1]

    def _take(self, connection: Connection) -> tuple[Chunk, ShardFacts | Exception]:
        try:
            kind, value = connection.recv()
        except (EOFError, OSError):
            raise self._make_worker_error(connection) from None
        chunk = self._busy.pop(connection)
        match kind:
            case "made":
                return chunk, value
            case "mistake":
                return chunk, DataError(value)
            case _:
                return chunk, RuntimeError(f"a worker failed:\n{value}")

    def _make_worker_error(self, connection: Connection) -> DataError:
        process = self._processes[connection]
        process.join(timeout=5)
        return DataError(
            f"a worker process ended unexpectedly (status {process.exitcode}), perhaps out of "
            "memory; rerun the command with fewer --processes to resume"
        )


def _serve(connection: Connection, maker: ShardMaker) -> None:
    """Make shards until there are no more chunks; runs in a worker process."""
    # Ctrl-C reaches every process of a terminal; workers are ended by their parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Chinese that is not segmented is noticed by the process that reads the text.
    warnings.simplefilter("ignore", DataWarning)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            chunk = connection.recv()
        except (EOFError, OSError):
            return
        try:
            reply: tuple[str, Any] = ("made", maker.make(chunk))
        except ElmoreError as error:
            reply = ("mistake", str(error))
        except Exception:
            reply = ("failure", traceback.format_exc())
        try:
            connection.send(reply)
        except OSError:
            return


def _end_with_parent() -> None:
    """Exit as soon as the parent process is gone, even if it was killed."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        sys.stderr.flush()
        os._exit(1)
