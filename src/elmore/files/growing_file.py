"""Files that only grow: what was committed survives a kill, the rest is cut off on reopening."""

import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmore.errors import DataError
from elmore.files.atomic import explaining_write_errors

# Read at once to compute a checksum.
BLOCK_BYTES = 1 << 24


@dataclass(frozen=True, kw_only=True, slots=True)
class FileFacts:
    """The length of a file and the CRC-32 of its bytes up to there; it may be longer."""

    num_bytes: int
    crc32: int

    def find_damage(self, path: Path, *, reads: bool) -> str | None:
        """Return what is wrong with a file, or None; with `reads`, compare its checksum too."""
        try:
            if not path.is_file():
                return f"{path} is missing"
            size = path.stat().st_size
            if size < self.num_bytes:
                return f"{path} has {size:,} bytes instead of {self.num_bytes:,}"
            is_same = not reads or compute_crc32(path, num_bytes=self.num_bytes) == self.crc32
        except OSError as error:
            return f"cannot read {path} ({error.strerror})"
        return None if is_same else f"{path} is damaged (its checksum differs)"


def compute_crc32(path: Path, *, num_bytes: int) -> int:
    """Return the CRC-32 of the first `num_bytes` of a file."""
    checksum, left = 0, num_bytes
    with path.open("rb") as file:
        while left and (block := file.read(min(BLOCK_BYTES, left))):
            checksum = zlib.crc32(block, checksum)
            left -= len(block)
    return checksum


EMPTY = FileFacts(num_bytes=0, crc32=0)


class GrowingFile:
    """Appends to a file, and keeps the checksum of everything in it.

    `facts` say how much of an existing file counts; what follows is cut off. A new file has the
    facts `EMPTY`.
    """

    def __init__(
        self, path: Path, facts: FileFacts, *, make_error: Callable[[str], DataError]
    ) -> None:
        self.path = path
        self._facts = facts
        if self._facts.num_bytes and (damage := self._facts.find_damage(path, reads=False)):
            raise make_error(damage)
        with explaining_write_errors(path):
            self._file = path.open("ab")
            self._file.truncate(self._facts.num_bytes)
            self._file.seek(0, os.SEEK_END)

    def append(self, data: Any) -> None:
        """Write bytes, or an array in memory order, at the end."""
        view = memoryview(data).cast("B")
        with explaining_write_errors(self.path):
            self._file.write(view)
        self._facts = FileFacts(
            num_bytes=self._facts.num_bytes + len(view), crc32=zlib.crc32(view, self._facts.crc32)
        )

    def commit(self) -> FileFacts:
        """Wait until everything is on the disk; return its length and checksum."""
        with explaining_write_errors(self.path):
            self._file.flush()
            os.fsync(self._file.fileno())
        return self._facts

    def close(self) -> None:
        """Close the file; what was not committed may or may not be in it."""
        with explaining_write_errors(self.path):
            self._file.close()
