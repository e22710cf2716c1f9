"""Read files that may be damaged or hostile: only plain files, small ones, and JSON objects."""

import json
from pathlib import Path
from typing import Any

from elmore.errors import ModelError

# Settings of published models have under 2 kB.
MAX_JSON_BYTES = 1 << 20
# As many as a 64-bit number has; longer ones would overflow after the checks.
MAX_DIGITS = 19
# No file is larger, and the sum of two such numbers still has 63 bits.
MAX_COUNT = (1 << 62) - 1


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
            f"{path} has {size:,} bytes, but such a file has at most {max_bytes:,}; use an intact "
            "copy"
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}; check the path") from error


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a small JSON file, such as a model's settings."""
    text = read_bounded(path, max_bytes=MAX_JSON_BYTES)
    try:
        content = json.loads(text, parse_int=_read_int, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ModelError(
            f"{path} is nested too deeply to be settings; use an intact copy"
        ) from error
    except ValueError as error:  # bad JSON or bad UTF-8
        raise ModelError(f"{path} is not JSON ({error}); use an intact copy") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path} holds a JSON {type(content).__name__}, not an object of settings")
    return content


def is_count(value: Any, *, least: int = 0, most: int = MAX_COUNT) -> bool:
    """Return whether a value is an integer, and not a bool, in this range."""
    return type(value) is int and least <= value <= most


def _read_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")
