"""Where task data may be: it is not part of the project, and tests that read it skip."""

import os
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]
_DATA = Path(os.environ.get("ELMORE_DATA", _ROOT.parent / "shared" / "data"))


def find_data(name: str) -> Path:
    """Return a file or folder of the data; skip the test if it is not there."""
    path = _DATA / name
    if not path.exists():
        pytest.skip(f"no {name} here: set ELMORE_DATA to a folder that has it")
    return path
