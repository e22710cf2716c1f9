"""What a folder is the training of; whether a command may go on there, and what it may remove."""

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from elmore.errors import ConfigError, DataError
from elmore.files.atomic import explaining_write_errors, hold_lock, make_folder, replace_file
from elmore.files.json_file import read_json, write_json
from elmore.tasks.data.parts import Files, Parts
from elmore.tasks.fit.folder import DOMAIN, ELMO, SETTINGS, WEIGHTS, WORDS
from elmore.tasks.fit.run import BEST_PATTERN, CHECKPOINTS
from elmore.tasks.fit.settings import FitSettings, read_settings

FORMAT = 3
PLAN, REPORT, LOCK = "plan.json", "report.json", ".lock"

# What changes neither the steps taken so far nor their order may change on the way.
FREE_SETTINGS = ("training.checkpoint_minutes", "training.threads")
RISING_SETTINGS = ("training.max_epochs", "training.patience")

Plan = dict[str, Any]


def make_plan(settings: FitSettings, parts: Parts, *, elmo: dict[str, Any] | None) -> Plan:
    """Return what makes one training another."""
    return {
        "format": FORMAT,
        "settings": settings.to_json(),
        "words": settings.words.file and _digest(Path(settings.words.file)),
        "parts": {part: _describe_files(files) for part, files in vars(parts).items()},
        "elmo": elmo,
    }


def write_plan(folder: Path, plan: Plan) -> None:
    """Make the folder that of a training."""
    with replace_file(folder / PLAN) as temporary:
        write_json(temporary, plan)


def check_plan(folder: Path, plan: Plan) -> None:
    """Refuse to go on with another training than the one that the folder has."""
    before = read_json(folder / PLAN)
    remedy = "name another folder, or begin anew with --restart"
    if before.get("format") != FORMAT:
        raise DataError(f"{folder / PLAN} has format {before.get('format')!r:.20}; {remedy}")
    try:
        old = _flatten(read_settings(before["settings"]).to_json())
    except (KeyError, TypeError, ConfigError) as error:
        raise DataError(f"{folder / PLAN} cannot be read ({error!s:.200}); {remedy}") from None
    is_finished = (folder / REPORT).is_file()
    for name, value in _flatten(plan["settings"]).items():
        if name in FREE_SETTINGS or old.get(name) == value:
            continue
        if name in RISING_SETTINGS and value > old[name] and not is_finished:
            continue
        state = "finished" if is_finished else "begun"
        raise ConfigError(
            f"{folder} has a training that was {state} with {name} = {old.get(name)}, not {value}; "
            f"{remedy}"
        )
    for part, files in plan["parts"].items():
        if before["parts"].get(part, {}).get("digest") != files["digest"]:
            raise ConfigError(f"{folder} has a training with other data for {part}; {remedy}")
    if before.get("words") != plan["words"]:
        raise ConfigError(f"{folder} has a training with other word vectors; {remedy}")
    if before["elmo"] != plan["elmo"]:
        raise ConfigError(f"{folder} has a training with another biLM; {remedy}")


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder of trainings; if none was begun in it, it goes again."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file; name a folder for the trained task")
    if folder.is_dir() and not (folder / PLAN).is_file() and list_others(folder):
        raise DataError(f"{folder} has other files in it; name a new or empty folder")
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    make_folder(folder)
    with explaining_write_errors(folder):
        release = hold_lock(folder / LOCK)
    try:
        yield
    finally:
        if not (folder / PLAN).is_file():
            (folder / LOCK).unlink(missing_ok=True)
            with suppress(OSError):  # not empty any more
                for place in missing:
                    place.rmdir()
        release()


def list_others(folder: Path) -> list[str]:
    """Return what is in a folder, but for a lock and what a killed process was writing."""
    return [path.name for path in folder.iterdir() if path.name not in (LOCK, f".{PLAN}.tmp")]


def clear_training(folder: Path) -> None:
    """Remove what a training wrote, and nothing else; what tells that it was one goes last."""
    (folder / REPORT).unlink(missing_ok=True)
    remove_leftovers(folder)
    for name in (ELMO, DOMAIN):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in (SETTINGS, WORDS, WEIGHTS, PLAN):
        (folder / name).unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Remove what a training needs until it is finished."""
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    for pattern in (
        BEST_PATTERN,
        f".{BEST_PATTERN}.tmp",
    ):  # the latter if a process was killed as it wrote
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)


def _describe_files(files: Files) -> dict[str, Any]:
    """Tell files from others by what is in them; a part may have thousands of them."""
    return {
        "first": str(files[0].resolve()) if files else None,
        "num_files": len(files),
        "num_bytes": sum(path.stat().st_size for path in files),
        "digest": hashlib.sha256(repr([_digest(path) for path in files]).encode()).hexdigest(),
    }


def _digest(path: Path) -> str | None:
    """Return what stands for a file's bytes; None if it cannot be read, which is told later."""
    try:
        status = path.stat()
        return _digest_bytes(path, status.st_size, status.st_mtime_ns)
    except OSError:
        return None


@cache
def _digest_bytes(path: Path, _size: int, _changed: int) -> str:
    """Read a file once, however many trainings of a comparison ask for it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of all sections under their whole names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{inner}": item for inner, item in value.items()}
        else:
            flat[name] = value
    return flat
