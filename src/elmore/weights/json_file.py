"""Read JSON that may be damaged or hostile."""

import json
from pathlib import Path
from typing import Any

from elmore.errors import ModelError

# Settings of published models have under 2 kB.
MAX_BYTES = 1 << 20


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a small JSON file."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise ModelError(f"{path} has {size} bytes; settings have under {MAX_BYTES}")
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}; check the path") from error
    except RecursionError as error:
        raise ModelError(f"{path} is nested too deeply to be settings; get it again") from error
    except ValueError as error:  # bad JSON, bad UTF-8, a number of thousands of digits
        raise ModelError(f"{path} is not JSON ({error}); get it again") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path} holds a JSON {type(content).__name__}, not an object of settings")
    return content


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write settings for people and programs to read."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
