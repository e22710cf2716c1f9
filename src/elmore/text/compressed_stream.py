"""Stream .gz, .xz, .bz2 and .zst files; truncated files and trailing bytes are errors.

Python's own .xz and .bz2 readers silently stop at foreign bytes, and zstandard's does not notice
a truncated file.
"""

import bz2
import io
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from elmore.errors import MissingExtraError

_READ_BYTES = 1 << 14
# Four bytes of zstd can expand to a block of 128 kB.
_ZSTD_BYTES = 1 << 8
_BUFFER_BYTES = 1 << 16
# Corpora are often compressed with a long window; zstd itself limits it to 2 GB.
_MAX_WINDOW_BYTES = 1 << 31


class _Member(Protocol):
    """One compressed member of a file, with the interface of bz2 and lzma decompressors."""

    @property
    def eof(self) -> bool:
        """Whether the end mark was read."""

    @property
    def needs_input(self) -> bool:
        """Whether more input is needed to produce output."""

    @property
    def unused_data(self) -> bytes:
        """Bytes after the end mark."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Take compressed bytes; return at most `max_length` decompressed bytes."""


@dataclass(frozen=True, kw_only=True)
class _Format:
    make_member: Callable[[], _Member]
    starts: tuple[bytes, ...]  # every member starts with one of them
    may_be_padded: bool = False  # with zeros, between members and after the last
    may_be_empty: bool = False


def open_compressed(file: BinaryIO, *, suffix: str) -> BinaryIO:
    """Return a stream of the decompressed data of `file`; `suffix` names the format."""
    if suffix == ".zst":
        _import_zstandard()  # before anything is read
    return io.BufferedReader(_MemberStream(file, FORMATS[suffix]), _BUFFER_BYTES)


class _MemberStream(io.RawIOBase):
    """The members of a file, one after another."""

    def __init__(self, file: BinaryIO, form: _Format) -> None:
        self._file = file
        self._form = form
        self._member: _Member | None = None
        self._compressed = b""
        self._has_members = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while True:
            if self._member is None and not self._begin_member():
                return 0
            data = self._decompress(len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)

    def _begin_member(self) -> bool:
        """Start the next member; return False at the end of the file."""
        longest = max(map(len, self._form.starts))
        while True:
            if self._has_members and self._form.may_be_padded:
                self._compressed = self._compressed.lstrip(b"\0")
            more = b"" if len(self._compressed) >= longest else self._file.read(_READ_BYTES)
            if not more:
                break
            self._compressed += more
        if not self._compressed and (self._has_members or self._form.may_be_empty):
            return False
        if self._has_members and not self._compressed.startswith(self._form.starts):
            raise OSError("other bytes follow its compressed data")
        self._has_members = True
        self._member = self._form.make_member()
        return True

    def _decompress(self, max_length: int) -> bytes:
        """Return some data of the member; b"" if it needs more input or has ended."""
        assert self._member is not None, "no member was started"
        member, is_file_over = self._member, False
        if member.needs_input and not self._compressed:
            self._compressed = self._file.read(_READ_BYTES)
            is_file_over = not self._compressed
        taken, self._compressed = self._compressed, b""
        if not member.needs_input:
            taken, self._compressed = b"", taken
        data = member.decompress(taken, max_length)
        if member.eof:
            self._compressed = member.unused_data + self._compressed
            self._member = None
        elif is_file_over and not data:
            raise EOFError("the compressed data ends without its end mark")
        return data


class _GzipMember:
    """zlib's decompressor, with the interface of the others."""

    def __init__(self) -> None:
        self._object = zlib.decompressobj(wbits=31)  # with the header and checksum of gzip

    @property
    def eof(self) -> bool:
        return self._object.eof

    @property
    def needs_input(self) -> bool:
        return not self._object.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._object.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._object.decompress(self._object.unconsumed_tail + data, max_length)


class _ZstdMember:
    """zstandard's decompressor; its output is unbounded, so it gets few bytes at a time."""

    def __init__(self) -> None:
        self._library = _import_zstandard()
        self._object = self._library.ZstdDecompressor(
            max_window_size=_MAX_WINDOW_BYTES
        ).decompressobj()
        self._packed = memoryview(b"")
        self._ready = memoryview(b"")

    @property
    def eof(self) -> bool:
        return bool(self._object.eof) and not self._ready

    @property
    def needs_input(self) -> bool:
        return not self._ready and not self._packed

    @property
    def unused_data(self) -> bytes:
        return bytes(self._object.unused_data) + bytes(self._packed)

    def decompress(self, data: bytes, max_length: int) -> bytes:
        self._packed = memoryview(data) if data else self._packed
        while self._packed and not self._ready and not self._object.eof:
            some, self._packed = self._packed[:_ZSTD_BYTES], self._packed[_ZSTD_BYTES:]
            try:
                self._ready = memoryview(self._object.decompress(some))
            except self._library.ZstdError as error:
                raise OSError(str(error)) from None
        given, self._ready = self._ready[:max_length], self._ready[max_length:]
        return bytes(given)


def _import_zstandard() -> Any:
    try:
        import zstandard  # noqa: PLC0415 (optional)
    except ImportError:
        raise MissingExtraError(needed_for="reading .zst files", extra="zstd") from None
    return zstandard


FORMATS = {
    ".gz": _Format(
        make_member=_GzipMember, starts=(b"\x1f\x8b",), may_be_padded=True, may_be_empty=True
    ),
    ".xz": _Format(
        make_member=lambda: lzma.LZMADecompressor(memlimit=_MAX_WINDOW_BYTES),
        starts=(b"\xfd7zXZ\0",),
        may_be_padded=True,
    ),
    ".bz2": _Format(make_member=bz2.BZ2Decompressor, starts=(b"BZh",)),
    ".zst": _Format(
        make_member=_ZstdMember,
        # 16 of the magic numbers mark skippable frames.
        starts=(
            b"\x28\xb5\x2f\xfd",
            *(bytes([first]) + b"\x2a\x4d\x18" for first in range(80, 96)),
        ),
        may_be_empty=True,
    ),
}
