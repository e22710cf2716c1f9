"""Write files atomically, so that no reader ever sees a half-written file."""

import errno
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from elmore.errors import DataError


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; rename it to `path` when it is complete."""
    path = resolve_target(path)
    # One fixed name, so that the next process overwrites what a killed one left behind.
    temporary = path.with_name(f".{path.name}.tmp")
    with explaining_write_errors(path):
        path.parent.mkdir(exist_ok=True)
        release = hold_lock(temporary)
        temporary.touch()  # without file locks, `hold_lock` does not create it
        mode = temporary.stat().st_mode
        try:
            yield temporary
            # Some writers create files that only the owner can read; models are shared.
            temporary.chmod(mode)
            flush_to_disk(temporary)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        finally:
            release()
        flush_to_disk(path.parent)


def resolve_target(path: Path) -> Path:
    """Return the path to write to, with links resolved; at most its last folder may be missing.

    A link is kept: the file that it points to, which may not exist yet, is replaced.
    """
    check_out(path)
    with explaining_write_errors(path):
        try:
            target = path.resolve()
        except RuntimeError:  # raised by Python up to 3.12 for circular links
            target = path
        if target.is_symlink() or (path.is_symlink() and not target.parent.is_dir()):
            raise _make_link_error(path)
        return target


def check_out(path: Path) -> None:
    """Raise an error for a path that is probably mistyped.

    That is a path behind a broken link, or one with more than its last folder missing.
    """
    refuse_broken_links(path.parent)
    with explaining_write_errors(path):
        # "." has no parents.
        existing = next((folder for folder in path.parents if folder.exists()), Path())
        if not existing.is_dir():
            raise DataError(f"cannot write {path}: {existing} is not a folder; write elsewhere")
        missing = [folder for folder in path.parents[1:] if not folder.exists()]
        if not missing:
            return
        remedy = "create it first"
        if len(missing) > 1:
            folders = shlex.quote(str(missing[0]))
            remedy = f"create it and the folders in it first (mkdir -p {folders})"
        raise DataError(
            f"cannot write {path}: there is no folder {missing[-1]}; {remedy}, or correct the path"
        )


def make_folder(folder: Path) -> None:
    """Create a folder and its parents if they do not exist."""
    refuse_broken_links(folder)
    with explaining_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)


def refuse_broken_links(folder: Path) -> None:
    """Raise an error if a folder is, or is behind, a broken link; do not create its target."""
    with explaining_write_errors(folder):
        for path in (folder, *folder.parents):
            if path.is_symlink() and not path.exists():
                raise _make_link_error(path)


def _make_link_error(link: Path) -> DataError:
    return DataError(
        f"cannot write to {link}: it is a broken link (to {link.readlink()}); remove the link, or "
        "create its target"
    )


def hold_lock(path: Path) -> Callable[[], None]:
    """Lock `path` (created if missing) against other processes; call the result to unlock.

    The lock ends when the process ends, even if it is killed. On Windows, and on network file
    systems without locks, nothing is locked.
    """
    if sys.platform == "win32":
        return lambda: None
    import fcntl  # noqa: PLC0415 - not on Windows

    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise DataError(
                f"another process is working on {path}; wait for it to end, or stop it"
            ) from None
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):
                os.close(descriptor)
                raise
        # Between opening and locking, its last holder may have renamed or removed the file.
        if path.exists() and os.path.samestat(path.stat(), os.fstat(descriptor)):
            return lambda: os.close(descriptor)
        os.close(descriptor)


@contextmanager
def explaining_write_errors(path: Path) -> Iterator[None]:
    """Turn OS errors, such as a full disk or a missing permission, into a `DataError`."""
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot write {path}: {_explain(error, path)}") from error


def _explain(error: OSError, path: Path) -> str:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return "the disk or your quota is full; free some space and run the command again"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return "permission denied; choose another folder"
        case errno.EEXIST | errno.ENOTDIR | errno.EISDIR:
            return "something else already exists there; move it away, or write elsewhere"
        case errno.ENOENT if not path.parent.exists():
            return f"the folder {path.parent} does not exist; create it first"
        case _:
            return str(error)


def flush_to_disk(path: Path) -> None:
    """Wait until changes to a file or folder survive a power failure."""
    if sys.platform == "win32" and path.is_dir():
        return  # Windows cannot open folders
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def drop_from_memory(path: Path) -> None:
    """Free the memory in which the system keeps a file that is on the disk.

    For files that are rarely read again; deleting them later is quick.
    """
    if not hasattr(os, "posix_fadvise"):  # as on macOS and Windows
        return
    with suppress(OSError):  # it is only advice
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def write_json(path: Path, content: Mapping[str, Any], *, indent: int = 2) -> None:
    """Write settings as JSON, readable for people."""
    text = json.dumps(content, indent=indent, ensure_ascii=False) + "\n"
    # Lone surrogates, from file names that are not UTF-8, become JSON escapes.
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def replace_json(path: Path, content: Mapping[str, Any], *, indent: int = 2) -> None:
    """Write settings like `write_json`, atomically."""
    with replace_file(path) as temporary:
        write_json(temporary, content, indent=indent)
