"""Folders that jobs write into: whether elmore created one, for which job, and if it is in use.

Every long job keeps its results in a folder. A marker file shows that elmore created the folder and
records what the job was started with. Each kind of job has a `FolderKind`, and decides for itself
which of the changes that `find_changes` returns are acceptable.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from elmore.errors import ConfigError, DataError
from elmore.files.atomic import (
    explaining_write_errors,
    hold_lock,
    make_folder,
    refuse_broken_links,
)

# Temporary files of `replace_file`, left behind when a process is killed.
LEFTOVERS = ".*.tmp"
MAX_CHANGES_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class FolderKind:
    """The names that one kind of job uses in its folder. Names may be patterns such as `*.npz`."""

    holds: str  # such as "a corpus", for messages
    markers: tuple[str, ...]  # any of them shows that elmore created the folder
    lock_name: str = ".lock"
    makes: tuple[str, ...] = ()  # everything else that the job creates, in order of deletion
    ignores: tuple[str, ...] = ()  # what may be in the folder before there is a marker
    is_marker: Callable[[Path], bool] = Path.is_file
    removes_lock: bool = False  # at the end of `hold`, even if there is a marker

    def is_ours(self, folder: Path) -> bool:
        """Return whether elmore created this folder."""
        return any(self.is_marker(folder / name) for name in self.markers)

    def check(self, folder: Path) -> None:
        """Raise an error if a folder contains files that are not elmore's."""
        refuse_broken_links(folder)
        with explaining_write_errors(folder):
            if not folder.exists():
                return
            if not folder.is_dir():
                raise DataError(f"{folder} is a file, not {self.holds}; choose another folder")
            ignored = (self.lock_name, LEFTOVERS, *self.ignores)
            others = [
                path.name
                for path in folder.iterdir()
                if not any(fnmatchcase(path.name, pattern) for pattern in ignored)
            ]
            if others and not self.is_ours(folder):
                raise DataError(
                    f"{folder} contains other files and is not {self.holds}; choose a new or empty "
                    "folder"
                )

    def lock(self, folder: Path) -> Callable[[], None]:
        """Create the folder if needed and lock it; call the result to unlock."""
        self.check(folder)
        make_folder(folder)
        with explaining_write_errors(folder):
            return hold_lock(folder / self.lock_name)

    @contextmanager
    def hold(self, folder: Path) -> Iterator[None]:
        """Lock the folder; remove what this created if the work inside leaves no marker."""
        created = [path for path in (folder, *folder.parents) if not path.exists()]
        release = self.lock(folder)
        try:
            yield
        finally:
            is_ours = self.is_ours(folder)
            if self.removes_lock or not is_ours:
                (folder / self.lock_name).unlink(missing_ok=True)
            if not is_ours:
                with suppress(OSError):  # the folder is no longer empty
                    for path in created:
                        path.rmdir()
            release()

    def clear(self, folder: Path) -> None:
        """Delete what the job created and nothing else; the markers last."""
        remove(folder, (*self.makes, *self.markers))


def remove(folder: Path, names: Iterable[str]) -> None:
    """Delete files and folders by name or pattern, in order; matches of a pattern in reverse."""
    for name in names:
        paths = sorted(folder.glob(name), reverse=True) if "*" in name else [folder / name]
        for path in paths:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.exists() or path.is_symlink():
                path.unlink(missing_ok=True)


def read_marker(
    path: Path, *, wanted_format: int, kind: str | None = None, any_format: bool = False
) -> dict[str, Any]:
    """Read a JSON marker; raise an error if it is damaged, not elmore's or of another version."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _make_marker_error(path, f"not JSON: {error!s:.200}") from None
    if not isinstance(content, dict):
        raise _make_marker_error(path, "not a JSON object")
    if kind is not None and content.get("kind") != kind:
        raise _make_marker_error(path, f"its kind is {content.get('kind')!r:.40}")
    number = content.get("format")
    if number != wanted_format and not any_format:
        raise DataError(
            f"{path} has format {number!r:.20}, this version of elmore reads format "
            f"{wanted_format}; start over with --restart, or use the version that created it"
        )
    return content


def _make_marker_error(path: Path, reason: str) -> DataError:
    return DataError(
        f"{path} is damaged or not elmore's ({reason}); restore it from a backup, or use another "
        "folder"
    )


class ChangedJobError(ConfigError, DataError):
    """A folder was started with other settings or data than it is asked to continue with."""

    def __init__(
        self, folder: Path, changes: Sequence[str], *, elsewhere: str = "another folder"
    ) -> None:
        num_more = len(changes) - MAX_CHANGES_SHOWN
        more = f" and {num_more} more" if num_more > 0 else ""
        super().__init__(
            f"{folder} was started with other settings or data: "
            f"{', '.join(changes[:MAX_CHANGES_SHOWN])}{more}; use {elsewhere}, or --restart to "
            "start over"
        )


def find_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, str]:
    """Describe each value that differs, by its full name, such as `training.seed`.

    Values are compared as JSON; a missing one equals None.
    """
    old, new = (flatten(json.loads(json.dumps(values))) for values in (before, now))
    return {
        name: f"{name} was {_show(old[name]) if name in old else 'not recorded'} and is now "
        f"{_show(new.get(name))}"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    }


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the values of nested mappings, and of lists of mappings, by their full names."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            flat |= flatten({f"{prefix}{name}[{n}]": item for n, item in enumerate(value)})
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:197] + "..."
