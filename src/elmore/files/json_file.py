"""Read JSON that may be damaged or hostile."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmore.errors import ModelError
from elmore.files.atomic import replace_file
from elmore.files.bounded_file import read_bounded

# Settings of published models have under 2 kB.
MAX_BYTES = 1 << 20
# Of 64 bits; a longer number would overflow somewhere behind the checks.
MAX_DIGITS = 19


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a small JSON file."""
    text = read_bounded(path, max_bytes=MAX_BYTES)
    try:
        content = json.loads(text, parse_int=_read_int, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ModelError(f"{path} is nested too deeply to be settings; get it again") from error
    except ValueError as error:  # bad JSON or bad UTF-8
        raise ModelError(f"{path} is not JSON ({error}); get it again") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path} holds a JSON {type(content).__name__}, not an object of settings")
    return content


def write_json(path: Path, content: Mapping[str, Any], *, indent: int = 2) -> None:
    """Write settings for people and programs to read."""
    text = json.dumps(content, indent=indent, ensure_ascii=False) + "\n"
    # A lone surrogate, as of a file name that is not UTF-8, becomes the escape JSON has for it.
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def replace_json(path: Path, content: Mapping[str, Any], *, indent: int = 2) -> None:
    """Write settings like `write_json`, all or nothing."""
    with replace_file(path) as temporary:
        write_json(temporary, content, indent=indent)


def _read_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")
