"""Read `.zst` files, noticing when one ends too early, which zstandard's own reader does not."""

import io
from typing import Any, BinaryIO

from elmore.errors import MissingExtraError

# Each read is unpacked at once; repetitive text may grow a thousandfold.
_READ_BYTES = 1 << 14


def open_zstd(file: BinaryIO, mode: str = "rb") -> BinaryIO:
    """Return a stream of what `file` holds, decompressed."""
    assert mode == "rb", "only for reading"
    try:
        import zstandard  # noqa: PLC0415 (optional)
    except ImportError:
        raise MissingExtraError(needed_for="reading .zst files", extra="zstd") from None
    return io.BufferedReader(_ZstdStream(file, library=zstandard))


class _ZstdStream(io.RawIOBase):
    """The frames of a file, one after another."""

    def __init__(self, file: BinaryIO, *, library: Any) -> None:
        self._file = file
        self._library = library
        # Files packed with a long window are common among corpora; zstd itself caps it at 2 GB.
        self._decompressor = library.ZstdDecompressor(max_window_size=1 << 31)
        self._frame: Any = None
        self._compressed = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._ready:
            self._compressed = self._compressed or self._file.read(_READ_BYTES)
            if not self._compressed:
                if self._frame is not None:
                    raise EOFError("the compressed data end before their end mark")
                return 0
            self._ready = memoryview(self._decompress())
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _decompress(self) -> bytes:
        """Return what the compressed bytes at hand give."""
        if self._frame is None:
            self._frame = self._decompressor.decompressobj()
        try:
            data = bytes(self._frame.decompress(self._compressed))
        except self._library.ZstdError as error:
            raise OSError(str(error)) from None
        self._compressed = b""
        if self._frame.eof:
            self._compressed = bytes(self._frame.unused_data)
            self._frame = None
        return data
