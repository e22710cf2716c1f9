"""Open only plain files, and read only small ones: no pipe to wait for, no device without end."""

from pathlib import Path

from elmore.errors import ModelError


def check_file(path: Path) -> int:
    """Return the size of a plain file; refuse anything else."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}; check the path") from error
    except ValueError as error:  # a name that no file can have
        raise ModelError(f"cannot read {str(path)!r:.200}: {error}; check the path") from error
    if not path.is_file():
        raise ModelError(f"{path} is not a file; check the path")
    return size


def read_bounded(path: Path, *, max_bytes: int) -> bytes:
    """Return the content of a file of at most `max_bytes`."""
    size = check_file(path)
    if size > max_bytes:
        raise ModelError(
            f"{path} has {size:,} bytes, such a file has under {max_bytes:,}; get it again"
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}; check the path") from error
