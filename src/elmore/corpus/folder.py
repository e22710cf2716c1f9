"""The folder of a corpus while it is made: whose it is, what it is made of, whether it is finished.

job.json comes first and says what the shards are made of: a resumed run keeps those it finds.
corpus.json comes last, so its presence means that the corpus is finished.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elmore.errors import DataError
from elmore.files.atomic import explaining_write_errors, hold_lock, make_folder, replace_file

FORMAT = 1
KIND = "elmore corpus"

SUMMARY, JOB, LOCK, SHARDS = "corpus.json", "job.json", "lock", "shards"
VOCABULARY, COUNTS, WORD_IDS = "vocabulary.txt", "counts.bin", "word_ids.bin"
PARTS = ("train", "heldout")
SEGMENTS = {part: f"{part}_segments.bin" for part in PARTS}
DOCUMENTS = {part: f"{part}_documents.bin" for part in PARTS}
FILES = (VOCABULARY, COUNTS, WORD_IDS, *SEGMENTS.values(), *DOCUMENTS.values())


def shard_path(folder: Path, number: int) -> Path:
    """Return the place of a shard."""
    return folder / SHARDS / f"{number:08d}.safetensors"


def damaged(what: str) -> DataError:
    """Return the error for damage to a finished corpus; `what` names the file."""
    return DataError(f"{what}; copy the corpus again, or prepare it with --restart")


def check_finished(folder: Path) -> None:
    """Refuse a folder without a finished corpus."""
    if (folder / SUMMARY).is_file():
        return
    if not folder.exists():
        raise DataError(f"there is no folder {folder}; make a corpus with elmore prepare")
    if (folder / JOB).is_file():
        raise DataError(
            f"the corpus in {folder} is unfinished; run the same elmore prepare command again to "
            "finish it"
        )
    raise DataError(f"{folder} holds no corpus; make one with elmore prepare")


def read_ours(path: Path, *, any_format: bool = False) -> dict[str, Any]:
    """Read a JSON file that this program wrote."""
    try:
        content = json.loads(path.read_bytes())
        kind, number = content["kind"], content["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(
            f"{path} is damaged or not elmore's ({error!r:.200}); copy the corpus again, or use "
            "another folder"
        ) from None
    if kind != KIND:
        raise DataError(f"{path} is not elmore's; use another folder")
    if number != FORMAT and not any_format:
        raise DataError(
            f"{path.parent} has format {number} and this elmore reads format {FORMAT}; prepare it "
            "again with --restart, or use the elmore that made it"
        )
    return dict(content)


@contextmanager
def hold_folder(folder: Path, *, restart: bool) -> Iterator[None]:
    """Make a folder, keep other processes from it, and empty it if asked; refuse a stranger's."""
    make_folder(folder)
    with explaining_write_errors(folder):
        _check_ours(folder, restart=restart)
        release = hold_lock(folder / LOCK)
    try:
        if restart:
            throw_away(folder)
        yield
    finally:
        (folder / LOCK).unlink(missing_ok=True)
        release()


def _check_ours(folder: Path, *, restart: bool) -> None:
    names = {path.name for path in folder.iterdir()} - {LOCK}
    known = [name for name in (JOB, SUMMARY) if name in names]
    if known:
        mistakes = []
        for name in known:
            try:
                read_ours(folder / name, any_format=restart)
            except DataError as error:
                mistakes.append(error)
        # To start over, one readable file is enough to know the folder; the other may be damaged.
        if mistakes and not (restart and len(mistakes) < len(known)):
            raise mistakes[0]
    elif any(not (name.startswith(".") and name.endswith(".tmp")) for name in names):
        raise DataError(
            f"{folder} is not empty and holds no corpus; choose a new folder, or empty this one"
        )


def throw_away(folder: Path) -> None:
    """Delete a corpus, whole or not, in an order that a kill cannot make look like a whole one."""
    (folder / SUMMARY).unlink(missing_ok=True)
    shutil.rmtree(folder / SHARDS, ignore_errors=True)
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    (folder / JOB).unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Delete what killed processes were writing."""
    for place in (folder, folder / SHARDS):
        for path in place.glob(".*.tmp"):
            path.unlink(missing_ok=True)


def check_job(folder: Path, job: Mapping[str, Any]) -> None:
    """Note what the shards are made of, or refuse to mix them with others."""
    path = folder / JOB
    if not path.exists() or not any((folder / SHARDS).glob("*.safetensors")):
        write_json(path, job)  # nothing was made of whatever an earlier call was given
        return
    earlier = read_ours(path)
    job = {"kind": KIND, "format": FORMAT, **job}
    differences = [
        f"{name} was {_show(earlier.get(name))} and is now {_show(job.get(name))}"
        for name in sorted({*earlier, *job})
        if earlier.get(name) != job.get(name)
    ]
    if differences:
        raise changed(folder, "; ".join(differences))


def changed(folder: Path, what: str) -> DataError:
    """Explain that a folder holds something else than what was asked for."""
    return DataError(
        f"{folder} was begun with other text or settings: {what}; use another folder, or --restart "
        "to start over"
    )


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else text[:197] + "..."


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write an object, whole or not at all."""
    with replace_file(path) as temporary:
        text = json.dumps({"kind": KIND, "format": FORMAT, **content}, indent=1, ensure_ascii=False)
        # A name that is not UTF-8 has lone surrogates, which become the escapes JSON has for them.
        temporary.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")


def hash_file(path: Path) -> str:
    """Return a file's SHA-256."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
