"""Which files of a folder are for training, for development and for the test."""

import re
from dataclasses import dataclass
from pathlib import Path

from elmore.errors import DataError

# Words in a file's name, or in that of a folder of files.
_NAMES = {
    "train": ("train", "training"),
    "dev": ("dev", "development", "valid", "validation", "val", "testa"),
    "test": ("test", "testb"),
}
_WORD = re.compile(r"[a-z]+")

Files = tuple[Path, ...]


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The files of each part; `test` may have none."""

    train: Files
    dev: Files
    test: Files = ()


def find_parts(
    folder: Path | None,
    *,
    train: Path | None = None,
    dev: Path | None = None,
    test: Path | None = None,
) -> Parts:
    """Return the parts of a folder, found by name; a part given by its path is that.

    A part is a file, or a folder whose files are read one after another, by name. A name that
    speaks of two parts, such as train-dev.txt, tells nothing.
    """
    if folder is not None and not folder.is_dir():
        raise DataError(f"{folder} is no folder; give one with files for train, dev and test")
    given = {"train": train, "dev": dev, "test": test}
    found = {
        part: _list(path) if path is not None else _find(folder, part)
        for part, path in given.items()
    }
    for part in ("train", "dev"):
        if not found[part]:
            place = f"{folder} has no file" if folder is not None else "there is no file"
            raise DataError(
                f"{place} for {part} (with one of {', '.join(_NAMES[part])} in its name); name "
                f"it with --{part}"
            )
    return Parts(**found)


def _find(folder: Path | None, part: str) -> Files:
    if folder is None:
        return ()
    paths = [path for path in sorted(folder.iterdir()) if _tell_parts(path) == [part]]
    if len(paths) > 1:
        names = ", ".join(path.name for path in paths)
        raise DataError(f"{folder} has several files for {part}: {names}; choose by --{part}")
    return _list(paths[0]) if paths else ()


def _tell_parts(path: Path) -> list[str]:
    """Return the parts that a name speaks of."""
    if path.name.startswith("."):
        return []
    words = set(_WORD.findall(path.name.lower()))
    return [part for part, names in _NAMES.items() if words.intersection(names)]


def _list(path: Path) -> Files:
    if path.is_dir():
        files = tuple(
            sorted(
                file
                for file in path.iterdir()
                if not file.name.startswith(".") and not file.is_dir()
            )
        )
        if not files:
            raise DataError(f"{path} has no files; give a file, or a folder of them")
        return files
    if not path.exists():
        raise DataError(f"there is no file {path}; check the path")
    return (path,)
