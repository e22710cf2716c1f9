"""Vectors in an npz archive for `numpy.load`: one array per sentence, named by its number."""

import io
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from elmore.embed.token_escapes import join_escaped, split_escaped
from elmore.embed.vector_file import SentenceVectors, VectorHeader
from elmore.errors import DataError

MAX_TEXT_BYTES_IN_MEMORY = 16_000_000


def write(
    path: Path, sentences: Iterable[SentenceVectors], *, header: VectorHeader, compress: bool
) -> None:
    """Write every sentence to a new file at `path`."""
    compression = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with (
        zipfile.ZipFile(path, "w", compression=compression) as archive,
        # Zip members are written one at a time, so the text is buffered until the vectors are in.
        tempfile.SpooledTemporaryFile(
            max_size=MAX_TEXT_BYTES_IN_MEMORY, dir=str(path.parent)
        ) as text,
    ):
        _write_array(archive, "header", np.array(header.to_json()))
        for number, sentence in enumerate(sentences):
            _write_array(archive, str(number), sentence.vectors)
            text.write(f"{join_escaped(sentence.tokens)}\n".encode())
        _write_text(archive, "sentences", text)


def read(path: Path) -> Iterator[SentenceVectors]:
    """Read the sentences in order."""
    with zipfile.ZipFile(path) as archive:
        _check_ours(path, archive)
        with archive.open("sentences.npy") as member:
            npy.read_magic(member)
            npy.read_array_header_1_0(member)
            for number, line in enumerate(io.TextIOWrapper(member, encoding="utf-8")):
                yield SentenceVectors(
                    tokens=split_escaped(line.removesuffix("\n")),
                    vectors=_read_array(archive, str(number)),
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


def _write_text(
    archive: zipfile.ZipFile, name: str, text: "tempfile.SpooledTemporaryFile[bytes]"
) -> None:
    """Write UTF-8 as an array of bytes; an array of strings would pad all to the longest."""
    description = {"descr": "|u1", "fortran_order": False, "shape": (text.tell(),)}
    text.seek(0)
    with _open_new(archive, name) as member:
        npy.write_array_header_1_0(member, description)
        shutil.copyfileobj(text, member)


def _read_array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as member:
        return npy.read_array(member, allow_pickle=False)
