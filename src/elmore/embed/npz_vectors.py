"""Vectors in an npz archive for `numpy.load`: one array per sentence, named by its number or id."""

import io
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from itertools import repeat
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from elmore.embed.optional_columns import OPTIONAL, read_optional, write_optional
from elmore.embed.token_escapes import join_escaped, split_escaped
from elmore.embed.vector_file import SentenceVectors, VectorHeader, name_array
from elmore.errors import DataError

MAX_BUFFER_BYTES_IN_MEMORY = 16_000_000
BUFFER_BYTES = 1 << 20  # written at once, because a write for every sentence takes longer
LINE_DTYPE = np.dtype("<i8")
ATTRIBUTES = 0o600 << 16  # as zipfile sets them


def write(
    path: Path, sentences: Iterable[SentenceVectors], *, header: VectorHeader, compress: bool
) -> None:
    """Write every sentence to a new file at `path`."""
    compression = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    write_vectors = _write_array if compress else _append_array
    with (
        path.open("w+b", buffering=BUFFER_BYTES) as file,
        zipfile.ZipFile(file, "w", compression=compression) as archive,
        # Zip members are written one at a time, so these are buffered until the vectors are in.
        _open_buffer(path.parent) as text,
        _open_buffer(path.parent) as lines,
        ExitStack() as stack,
    ):
        others: dict[str, Any] = {}  # that not every file has
        _write_array(archive, "header", np.array(header.to_json()))
        for number, sentence in enumerate(sentences):
            name = str(number)
            if sentence.key is not None:
                name = name_array(sentence.key)
            for column, value in write_optional(sentence).items():
                if column not in others:
                    others[column] = stack.enter_context(_open_buffer(path.parent))
                others[column].write(f"{value}\n".encode())
            write_vectors(archive, name, sentence.vectors)
            text.write(f"{join_escaped(sentence.tokens)}\n".encode())
            lines.write((sentence.line or 0).to_bytes(LINE_DTYPE.itemsize, "little"))
        # UTF-8 as an array of bytes; an array of strings would pad all to the longest.
        _write_buffer(archive, "sentences", text, dtype=np.dtype("|u1"))
        _write_buffer(archive, "line", lines, dtype=LINE_DTYPE)
        for column, buffer in others.items():
            _write_buffer(archive, column, buffer, dtype=np.dtype("|u1"))


def read(path: Path) -> Iterator[SentenceVectors]:
    """Read the sentences in order."""
    with zipfile.ZipFile(path) as archive:
        _check_ours(path, archive)
        lines, others = _read_lines(archive), _read_others(archive)
        with _open_values(archive, "sentences") as member:
            for number, text in enumerate(io.TextIOWrapper(member, encoding="utf-8")):
                facts = next(others)
                key = facts.get("key")
                yield SentenceVectors(
                    tokens=split_escaped(text.removesuffix("\n")),
                    vectors=_read_array(archive, str(number) if key is None else name_array(key)),
                    line=next(lines),
                    **facts,
                )


def read_header(path: Path) -> VectorHeader:
    """Read the array `header`."""
    with zipfile.ZipFile(path) as archive:
        _check_ours(path, archive)
        return VectorHeader.from_json(str(_read_array(archive, "header")))


def _check_ours(path: Path, archive: zipfile.ZipFile) -> None:
    if not {"header.npy", "sentences.npy"} <= set(archive.namelist()):
        raise DataError(
            f"{path} has no arrays 'header' and 'sentences', so elmore did not write it; "
            "read it with numpy.load"
        )


def _open_new(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    # A ZipInfo of our own has a fixed date, so that equal content gives equal files.
    member = zipfile.ZipInfo(f"{name}.npy")
    member.compress_type = archive.compression
    return archive.open(member, "w", force_zip64=True)


def _write_array(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    with _open_new(archive, name) as member:
        npy.write_array(member, array, allow_pickle=False)


def _append_array(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    """Write an uncompressed array to the same bytes as `_write_array`, in less time.

    Its size and checksum are known, so its header is written once and not corrected later.
    """
    assert archive.fp is not None
    assert array.flags.c_contiguous
    start, values = _make_array_header(array.dtype.str, array.shape), array.reshape(-1).view("u1")
    member = zipfile.ZipInfo(f"{name}.npy")
    member.external_attr = ATTRIBUTES
    member.header_offset = archive.fp.tell()
    member.CRC = zlib.crc32(values.data, zlib.crc32(start))
    member.file_size = member.compress_size = len(start) + values.nbytes
    archive.fp.write(member.FileHeader(zip64=True) + start)
    archive.fp.write(values.data)
    archive.filelist.append(member)
    archive.NameToInfo[member.filename] = member
    archive.start_dir = archive.fp.tell()  # where the next member or the directory goes


@lru_cache(1024)
def _make_array_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    buffer = io.BytesIO()
    npy.write_array_header_1_0(buffer, {"descr": dtype, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def _open_buffer(folder: Path) -> "tempfile.SpooledTemporaryFile[bytes]":
    return tempfile.SpooledTemporaryFile(max_size=MAX_BUFFER_BYTES_IN_MEMORY, dir=str(folder))


def _write_buffer(
    archive: zipfile.ZipFile,
    name: str,
    buffer: "tempfile.SpooledTemporaryFile[bytes]",
    *,
    dtype: "np.dtype[Any]",
) -> None:
    """Write the values in a buffer as an array."""
    shape = (buffer.tell() // dtype.itemsize,)
    buffer.seek(0)
    with _open_new(archive, name) as member:
        npy.write_array_header_1_0(
            member, {"descr": dtype.str, "fortran_order": False, "shape": shape}
        )
        shutil.copyfileobj(buffer, member)


@contextmanager
def _open_values(archive: zipfile.ZipFile, name: str) -> Iterator[IO[bytes]]:
    """Open an array to read its values one by one."""
    with archive.open(f"{name}.npy") as member:
        npy.read_magic(member)
        npy.read_array_header_1_0(member)
        yield member


def _read_lines(archive: zipfile.ZipFile) -> Iterator[int | None]:
    """Yield each sentence's line; None without end for a file that does not have them."""
    if "line.npy" in archive.namelist():
        with _open_values(archive, "line") as member:
            while value := member.read(LINE_DTYPE.itemsize):
                yield int.from_bytes(value, "little") or None
        raise ValueError("there are fewer lines than sentences")
    while True:
        yield None


def _read_others(archive: zipfile.ZipFile) -> Iterator[dict[str, Any]]:
    """Yield what the file has of the columns that not every file has."""
    names = [name for name in OPTIONAL if f"{name}.npy" in archive.namelist()]
    with ExitStack() as stack:
        columns = [
            io.TextIOWrapper(stack.enter_context(_open_values(archive, name)), encoding="utf-8")
            for name in names
        ]
        for texts in zip(*columns, strict=True) if columns else repeat(()):
            values = (text.removesuffix("\n") for text in texts)
            yield read_optional(dict(zip(names, values, strict=True)))
    raise ValueError("there are fewer keys, sources or positions than sentences")


def _read_array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as member:
        return npy.read_array(member, allow_pickle=False)
