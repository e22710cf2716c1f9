"""The disk space of the layer cache: which files are in use, and which are removed for new ones."""

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from elmore.errors import DataError
from elmore.files.atomic import hold_lock
from elmore.settings import check_range

MAX_BYTES = 20_000_000_000


class CacheSpace:
    """A folder of layer files, and how many bytes they may take."""

    def __init__(self, folder: Path | None = None, *, max_bytes: int | None = None) -> None:
        if max_bytes is not None:
            check_range("max_bytes", max_bytes, 0, 1 << 60)
        self.folder = default_folder() if folder is None else Path(folder)
        self.max_bytes = max_bytes

    def has_room(self, num_bytes: int, path: Path) -> bool:
        """Return whether `path` may have this size if all files not in use are removed."""
        others = [entry for entry in self._list_files() if entry[2] != path]
        used = sum(size for _, size, other in others if _is_used(other))
        return used + num_bytes <= self._find_limit()

    def sweep(self, path: Path) -> None:
        """Remove what killed processes left; a running one holds the lock of its file."""
        for part in self.folder.glob("*.part"):
            lock = part.with_name(f"{part.name.partition('.')[0]}.lock")
            if lock == path.with_suffix(".lock"):  # our own lock
                part.unlink(missing_ok=True)
                continue
            with suppress(DataError):
                release = hold_lock(lock)
                part.unlink(missing_ok=True)
                lock.unlink(missing_ok=True)
                release()

    def make_room(self, wanted_bytes: int, path: Path) -> int:
        """Remove files to make room for `wanted_bytes`; return how many of them are available."""
        files = [entry for entry in self._list_files() if entry[2] != path]
        limit = self._find_limit()
        used = sum(size for _, size, _ in files)
        for _, size, other in sorted(files):
            if used + wanted_bytes <= limit:
                break
            if other.suffix == ".layers" and _remove_unused(other):
                used -= size
        return min(wanted_bytes, limit - used)

    def _find_limit(self) -> int:
        if self.max_bytes is not None:
            return self.max_bytes
        # The files in the cache count as free space; otherwise a full cache would shrink.
        used = sum(_count_disk_bytes(path) for _, _, path in self._list_files())
        return min(MAX_BYTES, (shutil.disk_usage(self.folder).free + used) // 3)

    def _list_files(self) -> list[tuple[float, int, Path]]:
        """Return the time of last use, the size and the path of each file."""
        files = []
        for path in [*self.folder.glob("*.layers"), *self.folder.glob("*.part")]:
            with suppress(FileNotFoundError):  # another process may have removed it
                status = path.stat()
                files.append((status.st_mtime, status.st_size, path))
        return files


def default_folder() -> Path:
    """Return the folder `layers` in $ELMORE_CACHE or in the system's cache folder for elmore."""
    if folder := os.environ.get("ELMORE_CACHE"):
        return Path(folder).expanduser() / "layers"
    if folder := os.environ.get("XDG_CACHE_HOME"):
        caches = Path(folder)
    elif sys.platform == "win32":
        caches = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        caches = Path.home() / "Library" / "Caches"
    else:
        caches = Path.home() / ".cache"
    return caches / "elmore" / "layers"


def _count_disk_bytes(path: Path) -> int:
    """Return the disk space of a file: less than its size while it is only reserved."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0
    return min(status.st_size, 512 * getattr(status, "st_blocks", status.st_size))


def _is_used(path: Path) -> bool:
    """Return whether a process has a file open or is writing it."""
    if path.suffix != ".layers":
        return True
    try:
        release = hold_lock(path)
        if not path.stat().st_size:  # it had been removed, and locking created it again
            path.unlink()
        release()
    except (DataError, OSError):  # for example on a read-only disk
        return True
    return False


def _remove_unused(path: Path) -> bool:
    """Remove a file unless a process has it open; return whether it was removed."""
    try:
        release = hold_lock(path)
    except (DataError, PermissionError):
        return False
    try:
        path.unlink(missing_ok=True)
    except PermissionError:  # open on Windows
        return False
    finally:
        release()
    return True
