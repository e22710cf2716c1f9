"""Find and open the text files of a job: paths, patterns, folders and URLs of fsspec."""

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from elmore.embed.many_files.output_folder import LocalFolder, RemoteFolder
from elmore.embed.many_files.urls import explaining_url_errors, find_file_system, is_url
from elmore.errors import DataError
from elmore.text.compressed_stream import FORMATS, open_compressed
from elmore.text.files import TextForm, find_files, find_files_in, guess_form, open_text
from elmore.text.vocabulary import read_entries


@dataclass(frozen=True, kw_only=True)
class TextInput:
    """A text file."""

    name: str  # its path or URL
    num_bytes: int
    version: str  # differs when the file was changed
    form: TextForm


def find_inputs(
    texts: str | Path | Sequence[str | Path],
    *,
    files_from: str | Path | None = None,
    form: TextForm | None = None,
    outside: LocalFolder | RemoteFolder | None = None,
) -> list[TextInput]:
    """Return the files of paths, patterns, folders and URLs, and of a list of them in a file.

    Files in the folder `outside`, which the job writes, are left out.
    """
    given = [texts] if isinstance(texts, str | Path) else list(texts)
    if files_from is not None:
        given += [line for line in read_entries(Path(files_from)) if line.strip()]
    if not given:
        raise DataError("no text files were given; give paths, patterns, folders or URLs")
    found: dict[str, TextInput] = {}  # a file that is given twice is read once
    for text in given:
        for path in _find_urls(str(text)) if is_url(str(text)) else _find_paths(str(text)):
            if outside is not None and outside.contains(path.name):
                continue
            chosen = guess_form(Path(PurePosixPath(path.name).name)) if form is None else form
            key = path.name if is_url(path.name) else os.path.abspath(path.name)  # noqa: PTH100 (keeps links)
            found.setdefault(key, TextInput(**vars(path), form=chosen))
    if not found:
        raise DataError(f"all texts are in {outside}, the folder to write; choose another folder")
    return list(found.values())


@dataclass(frozen=True, kw_only=True)
class _File:
    name: str
    num_bytes: int
    version: str


def _find_paths(text: str) -> list[_File]:
    paths = find_files_in(Path(text)) if Path(text).is_dir() else find_files([text])
    return [_describe_path(path) for path in paths]


def _describe_path(path: Path) -> _File:
    try:
        facts = path.stat()
    except FileNotFoundError:
        raise DataError(f"there is no file {path}; check its path") from None
    except (OSError, ValueError) as error:
        raise DataError(f"cannot open {path} ({error}); check its path") from None
    if not stat.S_ISREG(facts.st_mode):
        raise DataError(
            f"{path} is a pipe or a device, and a job reads its texts more than once; give a file"
        )
    return _File(name=str(path), num_bytes=facts.st_size, version=str(facts.st_mtime_ns))


def _find_urls(url: str) -> list[_File]:
    with explaining_url_errors(url):
        system, path = find_file_system(url)
        is_pattern = any(character in path for character in "*?[")
        if is_pattern:
            paths = sorted(name for name in system.glob(path) if not system.isdir(name))
        elif system.isdir(path):
            paths = sorted(system.find(path))
        else:
            paths = [path]
        if not paths:
            raise DataError(f"no file matches {url!r}; check the URL")
        return [_describe_url(system, name) for name in paths]


def _describe_url(system: Any, path: str) -> _File:
    facts = system.info(path)
    # Most file systems have one of these; a file of any other is recognized by its size alone.
    known = ("ETag", "etag", "mtime", "LastModified", "last_modified", "created", "sha256")
    version = {name: str(facts[name]) for name in known if facts.get(name) is not None}
    return _File(
        name=system.unstrip_protocol(path),
        num_bytes=int(facts["size"] or 0),
        version=hashlib.sha256(repr(sorted(version.items())).encode()).hexdigest()[:16],
    )


@contextmanager
def open_stream(name: str) -> Iterator[BinaryIO]:
    """Open a file for reading, decompressed if its suffix says so."""
    if not is_url(name):
        with open_text(Path(name)) as (_, stream):
            yield stream
        return
    suffix = PurePosixPath(name).suffix.lower()
    with explaining_url_errors(name):
        system, path = find_file_system(name)
        with system.open(path, "rb") as file:
            yield open_compressed(file, suffix=suffix) if suffix in FORMATS else file
