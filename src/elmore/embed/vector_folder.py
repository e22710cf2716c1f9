"""A folder of vector files, written by a job over many text files, as one text."""

import json
import warnings
from pathlib import Path

from elmore.errors import DataError, DataWarning

JOB = "job.json"
MANIFEST = "manifest.json"


def find_parts(folder: Path) -> list[Path]:
    """Return the vector files of a finished job, in the order of its texts."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        parts = [folder / str(part["part"]) for part in manifest["parts"]]
        bad = dict(manifest["bad"])
    except FileNotFoundError:
        if (folder / JOB).exists():
            raise DataError(
                f"the job in {folder} is not finished; rerun its command to finish it, or read its "
                "parts one by one"
            ) from None
        raise DataError(
            f"{folder} has no {MANIFEST}, so it is no folder of vectors; give a vector file, or a "
            "folder that elmore embed wrote"
        ) from None
    except (ValueError, LookupError, TypeError) as error:
        raise DataError(
            f"{folder / MANIFEST} is damaged ({error}); rerun the job to write it again"
        ) from None
    for path in parts:
        if path.parent != folder or not path.is_file():
            raise DataError(f"{folder} lacks {path.name}; rerun the job to write it again")
    if bad:
        name, reason = next(iter(bad.items()))
        warnings.warn(
            f"{folder} lacks {len(bad)} of its texts or parts, which could not be embedded, such "
            f"as {name} ({reason:.200}); fix the text and rerun the job",
            DataWarning,
            stacklevel=4,
        )
    return parts
