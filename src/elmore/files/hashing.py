"""SHA-256 of files and of settings."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_content(content: Mapping[str, Any], *, ignores: str) -> str:
    """Return the SHA-256 of JSON values, independent of layout; the value `ignores` is left out."""
    others = {name: value for name, value in content.items() if name != ignores}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()
