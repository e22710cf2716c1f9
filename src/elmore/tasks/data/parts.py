"""Find the train, dev and test files in a folder."""

import re
from dataclasses import dataclass
from pathlib import Path

from elmore.errors import DataError

# Words in the name of a file, or of a folder of files.
_NAMES = {
    "train": ("train", "training"),
    "dev": ("dev", "development", "valid", "validation", "val", "testa"),
    "test": ("test", "testb"),
}
_WORD = re.compile(r"[a-z]+")

Files = tuple[Path, ...]


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The files of each part; `test` may be empty."""

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
    """Return the parts in a folder, found by name; paths given for parts take precedence.

    A part is a file, or a folder whose files are read in alphabetical order. A name with words of
    two parts, such as train-dev.txt, is ignored.
    """
    if folder is not None and not folder.is_dir():
        raise DataError(f"{folder} is not a folder; give one with files for train, dev and test")
    given = {"train": train, "dev": dev, "test": test}
    found = {
        part: _list(path) if path is not None else _find(folder, part)
        for part, path in given.items()
    }
    for part in ("train", "dev"):
        if not found[part]:
            problem = f"{folder} has no file" if folder is not None else "there is no file"
            raise DataError(
                f"{problem} for {part} (with one of {', '.join(_NAMES[part])} in its name); give "
                f"one with --{part}"
            )
    return Parts(**found)


def _find(folder: Path | None, part: str) -> Files:
    if folder is None:
        return ()
    paths = [path for path in sorted(folder.iterdir()) if _find_named_parts(path) == [part]]
    if len(paths) > 1:
        names = ", ".join(path.name for path in paths)
        raise DataError(f"{folder} has several files for {part}: {names}; choose one with --{part}")
    return _list(paths[0]) if paths else ()


def _find_named_parts(path: Path) -> list[str]:
    """Return the parts that the name of a file mentions."""
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
            raise DataError(f"{path} has no files; give a file, or a folder with files")
        return files
    if not path.exists():
        raise DataError(f"there is no file {path}; check the path")
    return (path,)
