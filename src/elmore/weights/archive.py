"""Unpack the archive of a published model into a temporary folder, trusting nothing in it.

Only files that a model can consist of are written, never outside the folder, and never more than
such an archive can hold. The folder is removed at the end; if the process is killed, the next one
that unpacks an archive removes it.
"""

import os
import shutil
import stat
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

from elmore.errors import DataError, ElmoreError, ModelError
from elmore.files.atomic import hold_lock
from elmore.files.untrusted import check_file
from elmore.text.compressed_stream import open_compressed

# The names of a zip archive, and of tar archives with how they are compressed.
ZIP = ".zip"
TAR = {
    ".tar.bz2": ".bz2",
    ".tbz2": ".bz2",
    ".tar.gz": ".gz",
    ".tgz": ".gz",
    ".tar.xz": ".xz",
    ".tar": "",
}
SUFFIXES = (ZIP, *TAR)
# Of files that are part of a model; others, such as a README, are not unpacked.
NEEDED = (".hdf5", ".h5", ".json", ".txt", ".txt.gz", ".pkl", ".dic", ".safetensors", ".index")
MAX_MEMBERS = 10_000
# Weights hardly compress, and the text beside them is small.
MAX_EXPANSION = 10
MAX_SMALL_BYTES = 1 << 24
COPY_BYTES = 1 << 20
# zipfile reads the list of members at once.
MAX_LIST_BYTES = 1 << 22
FOLDER = "elmore-unpacked-"
LOCK = ".lock"
SECONDS_BEFORE_CLEANUP = 3600  # in case locks do not work there


def is_archive(path: Path) -> bool:
    """Return whether the name of a file is that of an archive."""
    return path.name.lower().endswith(SUFFIXES) and path.is_file()


def name_archive(path: Path) -> str:
    """Return the name of an archive without its suffix."""
    suffix = max((end for end in SUFFIXES if path.name.lower().endswith(end)), key=len)
    return path.name[: -len(suffix)]


@contextmanager
def unpack(path: Path) -> Iterator[Path]:
    """Unpack an archive; yield the folder with its model, which is removed afterwards."""
    _remove_leftovers()
    with tempfile.TemporaryDirectory(prefix=FOLDER, ignore_cleanup_errors=True) as name:
        release = hold_lock(Path(name) / LOCK)
        try:
            folder = Path(name) / "files"
            folder.mkdir()
            with _explaining(path):
                _write_members(path, folder)
            yield _find_model(path, folder)
        except ModelError as error:
            # The user knows the archive, not the folder.
            text = str(error)
            if name not in text:
                raise
            raise type(error)(text.replace(str(Path(name) / "files"), str(path))) from error
        finally:
            release()


def _remove_leftovers() -> None:
    """Remove the folders of processes that were killed; those in use are locked."""
    if sys.platform == "win32":  # nothing is locked there
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER}*"):
        with suppress(OSError, DataError):
            facts = folder.lstat()
            is_ours = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid()
            if is_ours and time.time() - facts.st_mtime > SECONDS_BEFORE_CLEANUP:
                release = hold_lock(folder / LOCK)
                shutil.rmtree(folder, ignore_errors=True)
                release()


@dataclass(frozen=True, kw_only=True)
class _Member:
    """A file in an archive."""

    name: str
    content: IO[bytes]


def _write_members(path: Path, folder: Path) -> None:
    size = check_file(path)
    left = MAX_EXPANSION * size + MAX_SMALL_BYTES
    seen: set[str] = set()
    with path.open("rb") as file:
        is_zip = path.name.lower().endswith(ZIP)
        members = _read_zip(path, file) if is_zip else _read_tar(path, file, max_bytes=left)
        for member in members:
            target = _find_target(path, member.name)
            if str(target).lower() in seen:
                raise ModelError(
                    f"{path} has two files with the name {member.name!r:.60}; download it again"
                )
            seen.add(str(target).lower())
            (folder / target).parent.mkdir(parents=True, exist_ok=True)
            with (folder / target).open("xb") as output:
                while chunk := member.content.read(COPY_BYTES):
                    left -= len(chunk)
                    if left < 0:
                        raise _make_size_error(path, size)
                    output.write(chunk)


def _make_size_error(path: Path, size: int) -> ModelError:
    return ModelError(
        f"{path} has {size:,} bytes and unpacks to more than {MAX_EXPANSION} times as many, which "
        "no model does; download it again"
    )


def _is_needed(name: str) -> bool:
    """Return whether a file can be part of a model; skip those of macOS, and hidden ones."""
    parts = PurePosixPath(name).parts
    if any(part.startswith((".", "__MACOSX")) and part != "." for part in parts):
        return False
    last = parts[-1].lower() if parts else ""
    return last.endswith(NEEDED) or last == "checkpoint" or ".data-" in last


def _check_name(path: Path, name: str) -> None:
    parts = PurePosixPath(name).parts
    is_outside = name.startswith("/") or ".." in parts or ":" in name
    if is_outside or "\\" in name or "\0" in name or len(name) > 255:
        raise ModelError(
            f"{path} names the file {name!r:.60}, which would be outside of the archive's folder; "
            "get the archive from a source you trust"
        )


def _find_target(path: Path, name: str) -> Path:
    _check_name(path, name)
    return Path(*[part for part in PurePosixPath(name).parts if part != "."])


def _refuse(path: Path, name: str, what: str) -> ModelError:
    return ModelError(
        f"{path}: {name!r:.60} is {what}, and models consist of plain files; get the archive from "
        "a source you trust"
    )


def _check_number(path: Path, number: int) -> None:
    if number > MAX_MEMBERS:
        raise ModelError(
            f"{path} holds more than {MAX_MEMBERS:,} files, which no model does; download it again"
        )


class _BoundedReads:
    """A file of which only a little can be read at a time."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(MAX_LIST_BYTES + 1 if size < 0 else min(size, MAX_LIST_BYTES + 1))
        if len(data) > MAX_LIST_BYTES:
            raise ModelError(
                f"{self._path} has a list of files of more than {MAX_LIST_BYTES:,} bytes, which no "
                "model has; download it again"
            )
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _read_zip(path: Path, file: BinaryIO) -> Iterator[_Member]:
    with zipfile.ZipFile(cast("BinaryIO", _BoundedReads(path, file))) as archive:
        members = archive.infolist()
        _check_number(path, len(members))
        for member in members:
            _check_name(path, member.filename)
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _refuse(path, member.filename, "a link or a device")
            if member.flag_bits & 1:
                raise _refuse(path, member.filename, "encrypted")
        for member in members:
            if not member.is_dir() and _is_needed(member.filename):
                with archive.open(member) as content:
                    yield _Member(name=member.filename, content=content)


def _read_tar(path: Path, file: BinaryIO, *, max_bytes: int) -> Iterator[_Member]:
    suffix = max((end for end in TAR if path.name.lower().endswith(end)), key=len)
    stream = open_compressed(file, suffix=TAR[suffix]) if TAR[suffix] else file
    reader = _ForwardReader(path, stream, max_bytes=max_bytes)
    with tarfile.open(fileobj=cast("BinaryIO", reader), mode="r:") as archive:
        for number, member in enumerate(archive, start=1):
            _check_number(path, number)
            _check_name(path, member.name)
            if member.issparse() or not (member.isreg() or member.isdir()):
                raise _refuse(path, member.name, "a link or a device")
            content = archive.extractfile(member) if _is_needed(member.name) else None
            if content is not None:
                yield _Member(name=member.name, content=content)


class _ForwardReader:
    """A stream with the position that tarfile needs; it ends with an error after `max_bytes`."""

    def __init__(self, path: Path, stream: BinaryIO, *, max_bytes: int) -> None:
        self._path = path
        self._stream = stream
        self._max_bytes = max_bytes
        self._position = 0

    def tell(self) -> int:
        return self._position

    def read(self, size: int) -> bytes:
        if size > COPY_BYTES:  # a header that would fill the memory
            raise ModelError(f"{self._path} has a header of {size:,} bytes; download it again")
        data = self._stream.read(size)
        self._position += len(data)
        if self._position > self._max_bytes:
            raise _make_size_error(self._path, check_file(self._path))
        return data

    def seek(self, position: int) -> None:
        if position < self._position:
            raise OSError("the archive points backward")
        while position > self._position and self.read(min(COPY_BYTES, position - self._position)):
            pass


def _find_model(path: Path, folder: Path) -> Path:
    """Return the folder in which the files of the only model are."""
    found = sorted({file.parent for file in folder.rglob("*") if _is_weights(file)})
    if len(found) != 1:
        raise ModelError(
            f"{path} holds {len(found)} models; give an archive with one folder of weights"
        )
    return found[0]


def _is_weights(file: Path) -> bool:
    return file.suffix.lower() in (".hdf5", ".h5", ".safetensors", ".pkl", ".index")


@contextmanager
def _explaining(path: Path) -> Iterator[None]:
    """Turn what zipfile, tarfile and decompressors raise on damaged files into one sentence."""
    try:
        yield
    except ElmoreError:
        raise
    except PermissionError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}; check the path") from error
    except Exception as error:  # they can raise anything
        reason = " ".join(str(error).split())
        raise ModelError(
            f"{path} could not be unpacked ({reason:.100}); download it again, and check that "
            f"there is room in {tempfile.gettempdir()}"
        ) from error
