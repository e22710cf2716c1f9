"""The folder of a training run: what it was started with, and what may change on resuming."""

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from elmore.errors import ConfigError, DataError
from elmore.files.atomic import replace_json
from elmore.files.hashing import hash_file
from elmore.files.owned_folder import (
    ChangedJobError,
    FolderKind,
    find_changes,
    flatten,
    read_marker,
    remove,
)
from elmore.tasks.data.parts import Files, Parts
from elmore.tasks.fit.folder import DOMAIN, ELMO, SETTINGS, WEIGHTS, WORDS
from elmore.tasks.fit.run import BEST_PATTERN, CHECKPOINTS
from elmore.tasks.fit.settings import FitSettings, read_settings

FORMAT = 3
PLAN, REPORT = "plan.json", "report.json"
# The last pattern matches what a process that was killed while writing leaves behind.
UNTIL_FINISHED = (CHECKPOINTS, BEST_PATTERN, f".{BEST_PATTERN}.tmp")

TRAINING = FolderKind(
    holds="a trained task",
    markers=(PLAN,),
    makes=(REPORT, *UNTIL_FINISHED, ELMO, DOMAIN, SETTINGS, WORDS, WEIGHTS),
)

# Settings that may change when a run is resumed: they do not affect the steps so far.
FREE_SETTINGS = ("training.checkpoint_minutes", "training.threads")
RISING_SETTINGS = ("training.max_epochs", "training.patience")

Plan = dict[str, Any]


def make_plan(settings: FitSettings, parts: Parts, *, elmo: dict[str, Any] | None) -> Plan:
    """Return everything that identifies a training run."""
    return {
        "format": FORMAT,
        "settings": settings.to_json(),
        "words": settings.words.file and _hash(Path(settings.words.file)),
        "parts": {part: _describe_files(files) for part, files in vars(parts).items()},
        "elmo": elmo,
    }


def write_plan(folder: Path, plan: Plan) -> None:
    """Mark the folder as belonging to this run."""
    replace_json(folder / PLAN, plan)


def check_plan(folder: Path, plan: Plan) -> None:
    """Refuse to resume if this is not the run that was started in the folder."""
    before = read_marker(folder / PLAN, wanted_format=FORMAT)
    try:
        # Settings that did not exist when the plan was written get their defaults.
        old = read_settings(before["settings"]).to_json()
        parts, words, elmo = before["parts"], before.get("words"), before["elmo"]
    except (KeyError, TypeError, ConfigError) as error:
        raise DataError(
            f"{folder / PLAN} cannot be read ({error!s:.200}); use another folder, or --restart to "
            "start over"
        ) from None
    is_finished = (folder / REPORT).is_file()
    old_values, new_values = flatten(old), flatten(plan["settings"])
    changes = []
    for name, change in find_changes(old, plan["settings"]).items():
        if name in FREE_SETTINGS:
            continue
        is_longer = name in RISING_SETTINGS and new_values[name] > old_values[name]
        if is_longer and not is_finished:
            continue
        changes.append(f"{change} (the run is finished)" if is_longer else change)
    for part, files in plan["parts"].items():
        if parts.get(part, {}).get("digest") != files["digest"]:
            changes.append(f"other data for {part}")
    if words != plan["words"]:
        changes.append("other word vectors")
    if elmo != plan["elmo"]:
        changes.append("another biLM")
    if changes:
        raise ChangedJobError(folder, changes)


def remove_leftovers(folder: Path) -> None:
    """Delete what a run needs until it is finished."""
    remove(folder, UNTIL_FINISHED)


def _describe_files(files: Files) -> dict[str, Any]:
    """Identify files by their content; a part may have thousands of them."""
    return {
        "first": str(files[0].resolve()) if files else None,
        "num_files": len(files),
        "num_bytes": sum(path.stat().st_size for path in files),
        "digest": hashlib.sha256(repr([_hash(path) for path in files]).encode()).hexdigest(),
    }


def _hash(path: Path) -> str | None:
    """Return the hash of a file; None if it cannot be read, which is reported later."""
    try:
        status = path.stat()
        return _hash_once(path, status.st_size, status.st_mtime_ns)
    except OSError:
        return None


@cache
def _hash_once(path: Path, _size: int, _changed: int) -> str:
    """Hash a file only once for all runs of a comparison."""
    return hash_file(path)
