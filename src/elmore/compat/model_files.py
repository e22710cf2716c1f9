"""Find the files that old programs name, which are often URLs."""

import os
from pathlib import Path

VARIABLE = "ELMORE_MODELS"


def find_file(source: str | Path | None) -> Path:
    """Return the path of a file; a URL is looked up by its file name in $ELMORE_MODELS.

    Nothing is downloaded.
    """
    name = str(source)
    if "://" not in name:
        if not Path(name).is_file():
            raise FileNotFoundError(f"file {name} not found")
        return Path(name)
    found = Path(os.environ.get(VARIABLE, ".")) / name.rsplit("/", 1)[1]
    if not found.is_file():
        raise FileNotFoundError(
            f"elmore downloads nothing by itself, and {found} does not exist; download {name} and "
            f"set {VARIABLE} to the folder that it is in"
        )
    return found
