"""Write a vector file in a thread of its own, while more vectors are computed.

Every part is stored as a chunk first, so a kill costs no more than the part that is being written.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import Full, Queue
from types import TracebackType
from typing import Any, Self

from numpy.typing import NDArray

from elmore.embed.chunks import ChunkFolder
from elmore.embed.vector_file import SentenceVectors

# Parts that may wait in memory for the thread.
MAX_WAITING = 1
POLL_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class FilePart:
    """Entries to store, the sentences that were read for them, and the state after these."""

    entries: Sequence[SentenceVectors]
    read: Sequence[Sequence[str]]
    state: Mapping[str, NDArray[Any]] | None


class _InterruptedError(Exception):
    """Ends the writing of a file whose job has failed."""


class BackgroundWriter:
    """Stores parts in a folder of chunks, and all entries, also those already there, in a file.

    `write` gets the entries in order, and must remove its file if they end with an exception. Leave
    the `with` block after `finish`, or by an error: then the parts are kept, but not the file.
    """

    def __init__(
        self, chunks: ChunkFolder, write: Callable[[Iterator[SentenceVectors]], None]
    ) -> None:
        self._chunks = chunks
        self._parts: Queue[FilePart | None] = Queue(MAX_WAITING)
        self._is_finished = False
        self._thread = ThreadPoolExecutor(1, "elmore-writer")
        self._writing = self._thread.submit(write, self._store_parts())

    def add(self, part: FilePart) -> None:
        """Hand over the next part; wait if the thread is busy, and raise its error if it failed."""
        self._put(part)

    def finish(self) -> None:
        """Wait until the file is complete."""
        self._is_finished = True
        self._put(None)
        self._writing.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if not self._writing.done():
                self._put(None)
        finally:
            self._thread.shutdown()

    def _put(self, part: FilePart | None) -> None:
        while True:
            if self._writing.done():
                self._writing.result()
                return
            try:
                self._parts.put(part, timeout=POLL_SECONDS)
            except Full:
                continue
            return

    def _store_parts(self) -> Iterator[SentenceVectors]:
        """Yield what is stored, and then each part once it is stored too."""
        yield from self._chunks
        while (part := self._parts.get()) is not None:
            self._chunks.add(part.entries, read=part.read, state=part.state)
            yield from part.entries
        if not self._is_finished:
            raise _InterruptedError
