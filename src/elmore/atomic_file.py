"""Put a finished file in its place in one move, so that no reader ever sees half of it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elmore.errors import DataError


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to; move it to `path` when all went well."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"cannot write {path}: {reason}; nothing was changed") from error
    finally:
        temporary.unlink(missing_ok=True)
