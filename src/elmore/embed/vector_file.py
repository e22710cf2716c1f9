"""Write and read files of token vectors: HDF5, Parquet or npz, chosen by the file's suffix."""

import errno
import json
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from elmore.errors import DataError

FORMAT = 1

# Modules, not functions: h5py and pyarrow are slow to import and wait until a file needs them.
FORMATS = {
    ".h5": "elmore.embed.hdf5_vectors",
    ".hdf5": "elmore.embed.hdf5_vectors",
    ".parquet": "elmore.embed.parquet_vectors",
    ".npz": "elmore.embed.npz_vectors",
}


# eq=False: arrays have no single truth value, so a generated == would fail when it is used.
@dataclass(frozen=True, kw_only=True, eq=False)
class SentenceVectors:
    """A sentence and its vectors."""

    tokens: list[str]
    vectors: NDArray[Any]  # (tokens, D), or (layers, tokens, D) when all layers are kept


@dataclass(frozen=True, kw_only=True)
class VectorHeader:
    """How a file of vectors was made; stored in the file."""

    model: str
    model_hash: str
    state: str
    layers: str
    dtype: str  # "float32" or "float16"
    num_layers: int | None  # None: one mixed vector a token
    vector_dim: int

    def __post_init__(self) -> None:
        if self.dtype not in ("float32", "float16"):
            raise DataError(f"unknown dtype {self.dtype!r} for vectors; choose float32 or float16")

    def vectors_shape(self, num_tokens: int) -> tuple[int, ...]:
        """Return (tokens, D), or (layers, tokens, D) when all layers are kept."""
        shape = (num_tokens, self.vector_dim)
        return shape if self.num_layers is None else (self.num_layers, *shape)

    def to_json(self, **more: int) -> str:
        """Return the header as ASCII text, with its format number and what the file adds to it."""
        return json.dumps({"format": FORMAT, **asdict(self), **more})

    @classmethod
    def from_json(cls, text: str) -> "VectorHeader":
        """Read what `to_json` wrote; entries that are not the header's own are left aside."""
        entries = json.loads(text)
        if entries["format"] != FORMAT:
            raise DataError(
                f"this file of vectors has format {entries['format']} and elmore reads "
                f"format {FORMAT}; update elmore"
            )
        return cls(**{field.name: entries[field.name] for field in fields(cls)})


class VectorFormat(Protocol):
    """What the module of a format offers; paths and sentences arrive checked."""

    def write(
        self,
        path: Path,
        sentences: Iterable[SentenceVectors],
        *,
        header: VectorHeader,
        compress: bool,
    ) -> None:
        """Write every sentence to a new file at `path`."""

    def read(self, path: Path) -> Iterator[SentenceVectors]:
        """Read the sentences in order."""

    def read_header(self, path: Path) -> VectorHeader:
        """Read how the file was made."""


def write_vector_file(
    path: Path,
    sentences: Iterable[SentenceVectors],
    *,
    header: VectorHeader,
    compress: bool = False,
) -> None:
    """Write all sentences, or leave what is at `path` as it was; memory use stays flat."""
    path = Path(path)
    vector_format = _find_format(path)
    with replacing(path) as temporary:
        conformed = _conform_all(sentences, header=header)
        vector_format.write(temporary, conformed, header=header, compress=compress)


def read_vectors(path: Path) -> Iterator[SentenceVectors]:
    """Read a file of vectors sentence by sentence, in the order they were written."""
    path = _find_file(path)
    return _explain_read_errors(path, _find_format(path).read(path))


def read_header(path: Path) -> VectorHeader:
    """Read how a file of vectors was made."""
    path = _find_file(path)
    vector_format = _find_format(path)
    with _explaining_read_errors(path):
        return vector_format.read_header(path)


def check_vector_path(path: Path) -> None:
    """Refuse, before hours of work, a path that `write_vector_file` would refuse at the end."""
    path = Path(path)
    _find_format(path)
    if path.is_dir():
        raise DataError(f"cannot write {path}: it is a folder; name a file")


# Escaping: HDF5 strings cannot hold NUL, UTF-8 cannot hold lone surrogates, and a line of tokens
# needs tab and newline for itself. One rule for all formats; "\e" tells [""] from [].
_ESCAPES = {"\\": r"\\", "\0": r"\0", "\t": r"\t", "\n": r"\n", "\r": r"\r"}
_UNESCAPES = {escape[1]: character for character, escape in _ESCAPES.items()} | {"e": ""}
_ESCAPED = re.compile(r"\\(?:u([0-9a-f]{4})|(.))")
_TO_ESCAPE = re.compile("[\\\\\0\t\n\r\ud800-\udfff]")


def escape_token(token: str) -> str:
    r"""Spell a token without NUL, tab, newline, carriage return or lone surrogates.

    >>> print(escape_token("C:\\temp\t1"))
    C:\\temp\t1
    """
    if not token:
        return r"\e"
    return _TO_ESCAPE.sub(lambda match: _escape_character(match[0]), token)


def unescape_token(text: str) -> str:
    r"""Return the token that `escape_token` spelled.

    >>> unescape_token(r"\ud83d") == chr(0xD83D)
    True
    """
    if "\\" not in text:
        return text
    return _ESCAPED.sub(
        lambda match: chr(int(match[1], 16)) if match[1] else _UNESCAPES[match[2]], text
    )


def join_tokens(tokens: Sequence[str]) -> str:
    """Return a sentence as one line of escaped tokens, a tab between them."""
    return "\t".join(map(escape_token, tokens))


def split_tokens(line: str) -> list[str]:
    """Return the tokens that `join_tokens` joined."""
    return [unescape_token(text) for text in line.split("\t")] if line else []


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path to write; put it in the place of `path` once it is whole."""
    # A link keeps pointing where it did; the file behind it is the one replaced.
    path = path.resolve()
    # One fixed name, so that what a killed process left is overwritten by the next one.
    temporary = path.with_name(f".{path.name}.tmp")
    with explaining_write_errors(path):
        release = hold_lock(temporary)
        try:
            yield temporary
            _flush_to_disk(temporary)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        finally:
            release()
        _flush_to_disk(path.parent)


def hold_lock(path: Path) -> Callable[[], None]:
    """Keep other processes from locking `path` (created if missing); call the result to let go.

    The lock ends with the process, however that ends. On Windows, and on network file systems
    without locks, nothing is locked.
    """
    if sys.platform == "win32":
        return lambda: None
    import fcntl  # noqa: PLC0415 - not on Windows

    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise DataError(
                f"another process is working on {path}; wait for it to end, or stop it"
            ) from None
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):
                os.close(descriptor)
                raise
        # Between opening and locking, its last holder may have renamed or removed the file.
        if path.exists() and os.path.samestat(path.stat(), os.fstat(descriptor)):
            return lambda: os.close(descriptor)
        os.close(descriptor)


@contextmanager
def explaining_write_errors(path: Path) -> Iterator[None]:
    """Turn a full disk, a missing permission and the like into a `DataError`."""
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot write {path}: {_explain(error)}") from error


def _explain(error: OSError) -> str:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return "the disk or your share of it is full; free some space and run it again"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return "writing there is not allowed; choose another folder"
        case errno.EEXIST | errno.ENOTDIR | errno.EISDIR:
            return "something else is there already; move it away, or write elsewhere"
        case errno.ENOENT:
            return f"{error.filename or 'its folder'} does not exist; create it first"
        case _:
            return str(error)


def _flush_to_disk(path: Path) -> None:
    """Wait until a power cut can no longer undo what was done to a file or folder."""
    if sys.platform == "win32" and path.is_dir():
        return  # Windows cannot open folders
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _escape_character(character: str) -> str:
    return _ESCAPES.get(character) or f"\\u{ord(character):04x}"


def _find_format(path: Path) -> VectorFormat:
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise DataError(
            f"cannot tell the format of {path} by its suffix {path.suffix!r}; "
            f"choose one of {', '.join(FORMATS)}"
        )
    return cast(VectorFormat, import_module(FORMATS[suffix]))


def _find_file(path: Path) -> Path:
    path = Path(path)
    if not path.is_file():
        raise DataError(f"there is no file {path}; give the path of a file of vectors")
    return path


def _conform_all(
    sentences: Iterable[SentenceVectors], *, header: VectorHeader
) -> Iterator[SentenceVectors]:
    for number, sentence in enumerate(sentences):
        yield _conform(sentence, number=number, header=header)


def _conform(sentence: SentenceVectors, *, number: int, header: VectorHeader) -> SentenceVectors:
    """Give the vectors the file's dtype, and refuse a shape that is not the file's."""
    expected = header.vectors_shape(len(sentence.tokens))
    if sentence.vectors.shape != expected:
        raise DataError(
            f"sentence {number} has vectors of shape {sentence.vectors.shape}; "
            f"its {len(sentence.tokens)} tokens and the header ask for {expected}"
        )
    try:
        with np.errstate(over="raise"):
            vectors = np.ascontiguousarray(sentence.vectors, dtype=header.dtype)
    except FloatingPointError:
        raise DataError(
            f"sentence {number} has values too large for {header.dtype}; write float32"
        ) from None
    return SentenceVectors(tokens=sentence.tokens, vectors=vectors)


# What h5py, pyarrow, zipfile and numpy raise when a file is not what it should be.
_DAMAGE = (OSError, ValueError, KeyError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error)


@contextmanager
def _explaining_read_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise DataError(f"reading {path} is not allowed; change its permissions") from error
    except _DAMAGE as error:
        raise DataError(
            f"{path} is damaged or not a file of vectors ({error}); write it again"
        ) from error


def _explain_read_errors(
    path: Path, sentences: Iterator[SentenceVectors]
) -> Iterator[SentenceVectors]:
    with _explaining_read_errors(path):
        yield from sentences
