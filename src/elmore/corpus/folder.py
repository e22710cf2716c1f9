"""The folder of a corpus: its files, and how an unfinished one is recognized and resumed.

job.json is written first and records what the shards are made from, so that a resumed run can keep
finished shards. corpus.json is written last: if it exists, the corpus is finished.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elmore.errors import DataError
from elmore.files.atomic import replace_json
from elmore.files.owned_folder import (
    LEFTOVERS,
    ChangedJobError,
    FolderKind,
    find_changes,
    read_marker,
    remove,
)

FORMAT = 1
KIND = "elmore corpus"

SUMMARY, JOB, LOCK, SHARDS = "corpus.json", "job.json", "lock", "shards"
VOCABULARY, COUNTS, WORD_IDS = "vocabulary.txt", "counts.bin", "word_ids.bin"
PARTS = ("train", "heldout")
SEGMENTS = {part: f"{part}_segments.bin" for part in PARTS}
DOCUMENTS = {part: f"{part}_documents.bin" for part in PARTS}
FILES = (VOCABULARY, COUNTS, WORD_IDS, *SEGMENTS.values(), *DOCUMENTS.values())

# corpus.json is deleted first, since a folder that has it counts as finished.
CORPUS = FolderKind(
    holds="a corpus",
    markers=(JOB, SUMMARY),
    lock_name=LOCK,
    makes=(SUMMARY, SHARDS, *FILES),
    removes_lock=True,
)


def shard_path(folder: Path, number: int) -> Path:
    """Return the path of a shard."""
    return folder / SHARDS / f"{number:08d}.safetensors"


def has_shards(folder: Path) -> bool:
    """Return whether any shard has been written."""
    return any((folder / SHARDS).glob("*.safetensors"))


def damaged(what: str) -> DataError:
    """Return the error for a damaged corpus; `what` names the file."""
    return DataError(f"{what}; copy the corpus again, or prepare it with --restart")


def check_finished(folder: Path) -> None:
    """Raise an error unless a folder contains a finished corpus."""
    if (folder / SUMMARY).is_file():
        return
    if not folder.exists():
        raise DataError(f"{folder} does not exist; make a corpus with elmore prepare")
    if (folder / JOB).is_file():
        raise DataError(
            f"the corpus in {folder} is unfinished; rerun the elmore prepare command to resume"
        )
    raise DataError(f"{folder} does not contain a corpus; make one with elmore prepare")


def read_ours(path: Path, *, any_format: bool = False) -> dict[str, Any]:
    """Read a JSON file written by elmore prepare."""
    return read_marker(path, kind=KIND, wanted_format=FORMAT, any_format=any_format)


@contextmanager
def hold_folder(folder: Path, *, restart: bool) -> Iterator[None]:
    """Create and lock a folder, and clear it if `restart`."""
    _check_readable(folder, restart=restart)
    with CORPUS.hold(folder):
        if restart:
            CORPUS.clear(folder)
        yield


def _check_readable(folder: Path, *, restart: bool) -> None:
    known = [folder / name for name in CORPUS.markers if (folder / name).is_file()]
    mistakes = []
    for path in known:
        try:
            read_ours(path, any_format=restart)
        except DataError as error:
            mistakes.append(error)
    # To start over, one readable file is enough to recognize the folder; the other may be damaged.
    if mistakes and not (restart and len(mistakes) < len(known)):
        raise mistakes[0]


def remove_leftovers(folder: Path) -> None:
    """Delete temporary files of killed processes."""
    remove(folder, (LEFTOVERS, f"{SHARDS}/{LEFTOVERS}"))


def check_job(folder: Path, job: Mapping[str, Any]) -> None:
    """Record what the shards are made from; raise an error if existing ones differ."""
    path = folder / JOB
    job = {"kind": KIND, "format": FORMAT, **job}
    if not path.exists() or not has_shards(folder):
        replace_json(path, job, indent=1)  # an earlier job has not made any shard yet
    elif changes := find_changes(read_ours(path), job):
        raise ChangedJobError(folder, list(changes.values()))
