"""The folder that a job writes its parts to: on this machine, or at a URL of fsspec.

Any number of processes may write the same part: each has its own temporary file, publishes it by
one rename (or one upload), and writes the part's description last. A part counts only if it has
one.
"""

import json
import os
import shutil
import socket
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from elmore.embed.many_files.urls import explaining_url_errors, find_file_system, is_url
from elmore.errors import DataError
from elmore.files.atomic import check_out, explaining_write_errors, flush_to_disk, make_folder

ATTEMPTS = ".attempts"


def open_folder(name: str | Path) -> "LocalFolder | RemoteFolder":
    """Return the folder at a path or URL."""
    return RemoteFolder(str(name)) if is_url(str(name)) else LocalFolder(Path(name))


class LocalFolder:
    """A folder on this machine, or on storage that is mounted here."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def contains(self, name: str) -> bool:
        """Return whether a file is in this folder."""
        return not is_url(name) and Path(name).resolve().is_relative_to(self.path.resolve())

    def create(self) -> None:
        """Create the folder if it does not exist."""
        check_out(self.path)
        make_folder(self.path)

    def sizes(self) -> dict[str, int]:
        """Return the size of every file by its name."""
        if not self.path.exists():
            return {}
        if not self.path.is_dir():
            raise DataError(f"{self.path} is a file, not a folder of vectors; choose another path")
        with os.scandir(self.path) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}

    def read_json(self, name: str) -> Any:
        """Return the content of a JSON file; None if it is missing or damaged."""
        try:
            return json.loads((self.path / name).read_bytes())
        except (FileNotFoundError, ValueError):
            return None

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file atomically."""
        with self.attempt(name) as path:
            path.write_text(_to_text(content), encoding="utf-8")

    @contextmanager
    def attempt(self, name: str) -> Iterator[Path]:
        """Yield a path of this attempt alone; what is written there becomes the file `name`."""
        folder = self.path / ATTEMPTS / f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex}"
        with explaining_write_errors(self.path):
            folder.mkdir(parents=True)
            try:
                yield folder / name
                flush_to_disk(folder / name)
                (folder / name).replace(self.path / name)
                flush_to_disk(self.path)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def remove(self, name: str) -> None:
        """Delete a file."""
        with explaining_write_errors(self.path):
            (self.path / name).unlink(missing_ok=True)

    def remove_dead_attempts(self) -> None:
        """Delete what killed processes of this machine have left."""
        for folder in (self.path / ATTEMPTS).glob(f"{socket.gethostname()}_*_*"):
            if not _is_running(int(folder.name.rsplit("_", maxsplit=2)[1])):
                shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # other processes are at work
            (self.path / ATTEMPTS).rmdir()


class RemoteFolder:
    """A folder at a URL. An upload is published as a whole, when it is complete."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def __str__(self) -> str:
        return self.url

    def contains(self, name: str) -> bool:
        """Return whether a file is in this folder."""
        with self._used() as (system, path):
            return name.startswith(f"{system.unstrip_protocol(path).rstrip('/')}/")

    def create(self) -> None:
        """Create the folder, where that is needed."""
        with self._used() as (system, path):
            system.makedirs(path, exist_ok=True)

    def sizes(self) -> dict[str, int]:
        """Return the size of every file by its name."""
        with self._used() as (system, path):
            system.invalidate_cache()
            try:
                listed = system.ls(path, detail=True)
            except FileNotFoundError:
                return {}
            return {
                facts["name"].rstrip("/").rpartition("/")[2]: int(facts["size"] or 0)
                for facts in listed
                if facts["type"] == "file"
            }

    def read_json(self, name: str) -> Any:
        """Return the content of a JSON file; None if it is missing or damaged."""
        with self._used() as (system, path):
            try:
                return json.loads(system.cat_file(f"{path}/{name}"))
            except (FileNotFoundError, ValueError):
                return None

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file."""
        with self._used() as (system, path):
            system.pipe_file(f"{path}/{name}", _to_text(content).encode())

    @contextmanager
    def attempt(self, name: str) -> Iterator[Path]:
        """Yield a path on this machine; what is written there is uploaded as the file `name`."""
        with tempfile.TemporaryDirectory(prefix="elmore-") as folder:
            yield Path(folder) / name
            with self._used() as (system, path):
                system.put_file(str(Path(folder) / name), f"{path}/{name}")

    def remove(self, name: str) -> None:
        """Delete a file."""
        with self._used() as (system, path), suppress(FileNotFoundError):
            system.rm_file(f"{path}/{name}")

    def remove_dead_attempts(self) -> None:
        """Do nothing: attempts are temporary files of their machines."""

    @contextmanager
    def _used(self) -> Iterator[tuple[Any, str]]:
        with explaining_url_errors(self.url):
            yield find_file_system(self.url)


def _to_text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=1) + "\n"


def _is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        return True
    return True
