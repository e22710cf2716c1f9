"""Keep the result of a long job in a folder of chunks, so that a killed job can resume."""

import hashlib
import json
import shutil
import weakref
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmore.embed.token_escapes import join_escaped, split_escaped
from elmore.embed.vector_file import DAMAGE, SentenceVectors
from elmore.errors import DataError
from elmore.files.atomic import (
    check_out,
    drop_from_memory,
    explaining_write_errors,
    replace_file,
)
from elmore.files.owned_folder import (
    LEFTOVERS,
    ChangedJobError,
    FolderKind,
    find_changes,
    read_marker,
    remove,
)

FORMAT = 1
BUFFER_BYTES = 1 << 20  # written at once, because a write for every sentence takes longer
JOB = "job.json"
CHUNKS = FolderKind(holds="a folder of chunks", markers=(JOB,), lock_name="lock", makes=("*.npz",))


class ChunkFolder:
    """Sentences and their vectors, safe from the moment `add` returns.

    A folder belongs to one job and, while it is open, to one process. Written whole, a chunk is
    renamed into place; one that is damaged nevertheless is dropped with all after it.
    """

    def __init__(self, folder: Path, *, job: Mapping[str, Any], restart: bool = False) -> None:
        self.folder = Path(folder)
        self.num_sentences = 0
        self.digest = ""
        self.state: dict[str, NDArray[Any]] | None = None
        self._chunk_paths: list[Path] = []
        check_out(self.folder)
        with explaining_write_errors(self.folder):
            # What a process that was killed in `remove` left.
            shutil.rmtree(_removal_path(self.folder), ignore_errors=True)
            self._release = weakref.finalize(self, CHUNKS.lock(self.folder))
            try:
                if restart:
                    CHUNKS.clear(self.folder)
                self._open(job)
            except BaseException:
                self.close()
                raise

    def add(
        self,
        sentences: Sequence[SentenceVectors],
        *,
        read: Sequence[Sequence[str]] | None = None,
        state: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Store the next sentences, and the state after them, as one chunk: all or nothing.

        `read` is the tokens of the sentences in the text, if others are stored.
        """
        tokens_read = [sentence.tokens for sentence in sentences] if read is None else read
        if not tokens_read:
            return
        digest = self.digest
        for tokens in tokens_read:
            digest = digest_tokens(digest, tokens)
        num_sentences = self.num_sentences + len(tokens_read)
        path = self.folder / _chunk_name(len(self._chunk_paths))
        summary = {
            # Read up to and with this chunk, like the digest.
            "num_sentences": num_sentences,
            "digest": digest,
            "state": None if state is None else list(state),
        }
        with replace_file(path) as temporary, temporary.open("wb", buffering=BUFFER_BYTES) as file:
            _write_chunk(file, sentences, summary=summary, state=state or {})
        drop_from_memory(path)
        self._chunk_paths.append(path)
        self.num_sentences = num_sentences
        self.digest = digest
        self.state = None if state is None else {name: state[name].copy() for name in state}

    def __iter__(self) -> Iterator[SentenceVectors]:
        """Give all stored sentences in order; one chunk at a time is in memory."""
        for path in self._chunk_paths:
            try:
                yield from _read_sentences(path)
            except DAMAGE as error:
                raise DataError(
                    f"{path} was damaged since it was written ({error}); run the same command "
                    "again, and the work from there on is redone"
                ) from error

    def remove(self) -> None:
        """Delete the folder, once its sentences are safe elsewhere."""
        removal_path = _removal_path(self.folder)
        with explaining_write_errors(self.folder):
            # Renamed first: a process killed between two deletions must not leave half a job.
            self.folder.rename(removal_path)
            # Before deleting: NFS keeps a file that is open, and then its folder too.
            self.close()
            shutil.rmtree(removal_path)

    def close(self) -> None:
        """Let other processes use the folder; it keeps what was added."""
        self._release()

    def __enter__(self) -> "ChunkFolder":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _open(self, job: Mapping[str, Any]) -> None:
        remove(self.folder, (LEFTOVERS,))
        job_path = self.folder / JOB
        if job_path.exists():
            _check_same_job(self.folder, _read_job(job_path), job)
        else:
            with replace_file(job_path) as temporary:
                temporary.write_text(json.dumps({"format": FORMAT, "job": dict(job)}))
        self._find_chunks()

    def _find_chunks(self) -> None:
        paths = sorted(self.folder.glob("*.npz"))
        summary = None
        for number, path in enumerate(paths):
            whole = _check_chunk(path) if path.name == _chunk_name(number) else None
            if whole is None:
                # From the last one: killed halfway, the damaged one is still there to be found.
                for dropped in reversed(paths[number:]):
                    dropped.unlink()
                break
            summary = whole
            self._chunk_paths.append(path)
        if summary is not None:
            self.num_sentences = summary["num_sentences"]
            self.digest = summary["digest"]
            self.state = _read_state(self._chunk_paths[-1], names=summary["state"])


def digest_tokens(previous: str, tokens: Sequence[str]) -> str:
    """Return the digest of all sentences up to this one, given that of those before ("" at first).

    Each token goes in with its length, so other sentences or other cuts never look the same.
    """
    joined = "".join([f"{len(token)}:{token}" for token in tokens])
    if joined.isascii():  # nearly always, and then faster
        return hashlib.sha256(f"{previous}\n{joined}".encode()).hexdigest()
    parts = [previous.encode(), b"\n"]
    for token in tokens:
        text = token.encode("utf-8", "surrogatepass")
        parts += [b"%d:" % len(text), text]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def _chunk_name(number: int) -> str:
    return f"{number:08d}.npz"


def _removal_path(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.removing")


def _read_job(path: Path) -> dict[str, Any]:
    content = read_marker(path, wanted_format=FORMAT)
    if not isinstance(content.get("job"), dict):
        raise DataError(f"{path} is damaged (it has no job); delete the folder {path.parent}")
    return dict(content["job"])


def _check_same_job(folder: Path, earlier: Mapping[str, Any], job: Mapping[str, Any]) -> None:
    changes = find_changes(earlier, job)
    if not changes:
        return
    phrases = list(changes.values())
    if list(changes) == ["kernel"]:
        phrases.append(_explain_kernel(str(earlier.get("kernel") or "")))
    raise ChangedJobError(folder, phrases, elsewhere="another file")


def _explain_kernel(kernel: str) -> str:
    """Say how to get the kernel of an earlier run back."""
    reason = "and kernels differ in the last digits of a vector: to resume,"
    if kernel.startswith(("avx", "torch")) and "-" not in kernel:
        # The variable names a family; which of it is used depends on the CPU.
        return f"{reason} set ELMORE_KERNEL={kernel.split('_', maxsplit=1)[0]}"
    return f"{reason} run it where that kernel is used"


def _write_chunk(
    file: Any,
    sentences: Sequence[SentenceVectors],
    *,
    summary: Mapping[str, Any],
    state: Mapping[str, NDArray[Any]],
) -> None:
    arrays = [sentence.vectors for sentence in sentences] or [np.empty((0, 0), np.float32)]
    assert len({array.dtype for array in arrays}) == 1, "joining would change the bits"
    lines = "".join(f"{join_escaped(sentence.tokens)}\n" for sentence in sentences)
    members: dict[str, Any] = {
        "summary": [np.array(json.dumps(summary))],
        "lines": [np.frombuffer(lines.encode(), np.uint8)],
        "vectors": arrays,
        # Numbered, because a name may hold what a member of an archive may not.
        **{f"state_{number}": [array] for number, array in enumerate(state.values())},
    }
    # What numpy's savez writes, without joining the arrays in memory first.
    with zipfile.ZipFile(file, "w") as archive:
        for name, parts in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                _write_joined(member, parts)


def _write_joined(file: Any, arrays: Sequence[NDArray[Any]]) -> None:
    """Write arrays in numpy's format, joined along the last axis but one."""
    first = arrays[0]
    shape = list(first.shape)
    if len(arrays) > 1:
        shape[-2] = sum(array.shape[-2] for array in arrays)
    header = np.lib.format.header_data_from_array_1_0(first[:0] if first.ndim else first)
    header |= {"shape": tuple(shape), "fortran_order": False}
    np.lib.format.write_array_header_1_0(file, header)
    for index in np.ndindex(*shape[:-2]):
        for array in arrays:
            file.write(np.ascontiguousarray(array[index]).reshape(-1).view(np.uint8).data)


def _member_names(*, num_states: int) -> set[str]:
    return {"summary", "lines", "vectors", *(f"state_{number}" for number in range(num_states))}


@contextmanager
def _load(path: Path) -> Iterator[Any]:
    # numpy, given a path, leaves the file open when the archive is damaged.
    with path.open("rb") as file, np.load(file) as arrays:
        yield arrays


def _check_chunk(path: Path) -> dict[str, Any] | None:
    """Return the summary of a whole chunk, None for a damaged one."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.testzip() is not None:  # compares the checksum of every member
                return None
        with _load(path) as arrays:
            summary = dict(json.loads(str(arrays["summary"])))
            # Damage at the end of a zip can hide members from that comparison.
            is_whole = set(arrays.files) == _member_names(num_states=len(summary["state"] or []))
            return summary if is_whole else None
    except PermissionError:
        raise
    except DAMAGE:
        return None


def _read_sentences(path: Path) -> Iterator[SentenceVectors]:
    with _load(path) as arrays:
        lines = arrays["lines"].tobytes().decode().split("\n")[:-1]
        vectors = arrays["vectors"]
    start = 0
    for line in lines:
        tokens = split_escaped(line)
        end = start + len(tokens)
        # A copy: a view would keep the chunk in memory while the next one is read.
        yield SentenceVectors(tokens=tokens, vectors=vectors[..., start:end, :].copy())
        start = end


def _read_state(path: Path, *, names: list[str] | None) -> dict[str, NDArray[Any]] | None:
    if names is None:
        return None
    with _load(path) as arrays:
        return {name: arrays[f"state_{number}"] for number, name in enumerate(names)}
