"""Write and read files of token vectors: HDF5, Parquet or npz, chosen by the file's suffix."""

import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from elmore.arguments import explain_calls
from elmore.config import Precision
from elmore.embed.vector_folder import find_parts
from elmore.errors import DataError
from elmore.extras import require_extra
from elmore.files.atomic import flush_to_disk, replace_file, resolve_target
from elmore.settings import read_path

FORMAT = 1
# numpy's names of the formats, as headers have them.
DTYPES = {Precision.F32: "float32", Precision.F16: "float16", Precision.INT8: "int8"}

# Modules, not functions: h5py and pyarrow are slow to import, so only import them when needed.
FORMATS = {
    ".h5": "elmore.embed.hdf5_vectors",
    ".hdf5": "elmore.embed.hdf5_vectors",
    ".parquet": "elmore.embed.parquet_vectors",
    ".npz": "elmore.embed.npz_vectors",
}

# The errors that h5py, pyarrow, zipfile and numpy raise on damaged files.
DAMAGE = (
    OSError,
    ValueError,
    TypeError,
    LookupError,
    RuntimeError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
)


# eq=False: a generated == would fail, because arrays have no single truth value.
@dataclass(frozen=True, kw_only=True, eq=False)
class SentenceVectors:
    """A sentence and its vectors."""

    tokens: list[str]
    vectors: NDArray[Any]  # (tokens, D), or (layers, tokens, D) when all layers are kept
    line: int | None = None
    """Where the sentence starts in the input, from 1; None in older files, which don't say it."""
    key: str | None = None
    """The id of the record, if the input has ids, such as FASTA."""
    source: str | None = None
    """The input file, in the files of a job that reads several."""
    positions: list[int] | None = None
    """Where the tokens are in their sentence, from 0; None if all of its tokens are here."""


@dataclass(frozen=True, kw_only=True)
class VectorHeader:
    """How a vector file was made; stored in the file."""

    model: str
    model_hash: str
    state: str
    layers: str
    dtype: str  # numpy's name: "float32", "float16", or "int8" with a scale per vector
    num_layers: int | None  # None: one vector per token
    vector_dim: int
    precision: str = "f32"  # of the weights; older files without this entry have f32
    kernel: str | None = None  # that computed it: avx2, ..., torch; None in older files
    pool: str | None = None  # mean, ...: a sentence has one vector, under one token
    per: str | None = None  # "document": a document has one vector
    words: str | None = None  # SHA-256 of the list of words, if only their vectors are kept
    projection: str | None = None  # SHA-256 of the projection to `vector_dim`, if there is one

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES.values():
            raise DataError(
                f"unknown dtype {self.dtype!r} for vectors; choose one of "
                f"{', '.join(DTYPES.values())}"
            )

    @property
    def computed_dtype(self) -> str:
        """The dtype of vectors before they are written and after they are read."""
        return "float32" if self.dtype == "int8" else self.dtype

    def vectors_shape(self, num_tokens: int) -> tuple[int, ...]:
        """Return (tokens, D), or (layers, tokens, D) when all layers are kept."""
        shape = (num_tokens, self.vector_dim)
        return shape if self.num_layers is None else (self.num_layers, *shape)

    def to_json(self, **more: int) -> str:
        """Return the header as ASCII JSON, with the format number and entries of the file type."""
        # Without these entries, the header is as it was before they existed.
        optional = ("pool", "per", "words", "projection")
        entries = {
            name: entry
            for name, entry in asdict(self).items()
            if entry is not None or name not in optional
        }
        return json.dumps({"format": FORMAT, **entries, **more})

    @classmethod
    def from_json(cls, text: str) -> "VectorHeader":
        """Read what `to_json` wrote; unknown entries are ignored."""
        entries = json.loads(text)
        if entries["format"] != FORMAT:
            raise DataError(
                f"this vector file has format {entries['format']}, but this elmore reads "
                f"format {FORMAT}; update elmore"
            )
        known = {field.name for field in fields(cls)}
        return cls(**{name: entry for name, entry in entries.items() if name in known})


class VectorFormat(Protocol):
    """The functions in the module of a file format; paths and sentences are already checked."""

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
        """Read the header."""


def write_vector_file(
    path: str | Path,
    sentences: Iterable[SentenceVectors],
    *,
    header: VectorHeader,
    compress: bool = False,
    flush_bytes: int | None = None,
) -> None:
    """Write all sentences, or leave `path` unchanged on failure; memory use is constant.

    With `flush_bytes`, wait for the disk whenever so many bytes of vectors were written. Use it in
    a thread of its own: then little is left to wait for at the end.
    """
    path = Path(path)
    vector_format = _find_format(path)
    with replace_file(path) as temporary:
        conformed = _conform_all(sentences, header=header)
        if flush_bytes is not None:
            conformed = _flush_now_and_then(conformed, temporary, flush_bytes=flush_bytes)
        vector_format.write(temporary, conformed, header=header, compress=compress)


class StoredVectors(Iterator[SentenceVectors]):
    """The sentences of a vector file, one at a time, or all their tokens as a table.

    A table has one row per token, with the columns `sentence`, `line`, `position`, `token` and
    `vector`, or `layer_0`, `layer_1`, ... instead of `vector`. It always has the whole file, and
    needs memory for it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        parts = find_parts(path) if path.is_dir() else [path]
        for part in parts:
            _find_format(part)
        self._sentences = chain.from_iterable(map(_read_part, parts))

    def __next__(self) -> SentenceVectors:
        """Read the next sentence."""
        return next(self._sentences)

    def to_arrow(self) -> Any:
        """Return a pyarrow.Table; vectors are fixed-size lists, which DuckDB reads as arrays."""
        from elmore.embed.token_rows import make_table  # noqa: PLC0415  brings pyarrow

        sentences = list(StoredVectors(self.path))
        header = _find_header(self.path, sentences)
        return make_table(sentences, header=replace(header, dtype=header.computed_dtype))

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame; each vector is a numpy array."""
        require_extra("pandas", needed_for="a table of pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return a polars.DataFrame; vectors have the type Array."""
        require_extra("polars", needed_for="a table of polars")
        return import_module("polars").from_arrow(self.to_arrow())


@explain_calls()
def read_vectors(path: str | Path) -> StoredVectors:
    """Read a vector file sentence by sentence, in the order they were written.

    Each sentence has `tokens`, `vectors` and `line`, the line of the input that it starts on. Files
    of AllenNLP and bilm-tf can be read too, and folders of `embed_files`, whose sentences also have
    a `source`, the text file.

    ```python
    for sentence in elmore.read_vectors("vectors.h5"):
        print(sentence.line, sentence.tokens, sentence.vectors.shape)
    frame = elmore.read_vectors("vectors.h5").to_pandas()  # or to_polars, to_arrow
    ```
    """
    return StoredVectors(_find_file(path))


def read_header(path: str | Path) -> VectorHeader:
    """Read the header of a vector file: how it was made."""
    path = _find_file(path)
    if path.is_dir():  # whose parts all have the same header
        parts = find_parts(path)
        if not parts:
            raise DataError(f"the folder {path} has no parts; its texts are empty")
        path = parts[0]
    vector_format = _find_format(path)
    with _explaining_read_errors(path):
        return vector_format.read_header(path)


def name_array(key: str) -> str:
    """Return the name of the array of a record; "/" would make a group in HDF5.

    >>> name_array("PF00042/3-101")
    'PF00042_3-101'
    """
    return key.replace("/", "_").replace("\0", "_")


def check_vector_path(path: str | Path, *, dtype: str = "float32") -> None:
    """Fail now, not after hours of work, if `write_vector_file` could not write to `path`."""
    path = Path(path)
    _find_format(path)
    if dtype == "int8" and path.suffix.lower() != ".parquet":
        raise DataError(
            f"{path.suffix} files have no scales for int8 vectors; write a .parquet file, or f16"
        )
    if path.is_dir():
        raise DataError(f"cannot write {path}: it is a folder; give a file name")
    resolve_target(path)


def _find_format(path: Path) -> VectorFormat:
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise DataError(
            f"{path} has the unknown suffix {path.suffix!r}; choose one of {', '.join(FORMATS)}"
        )
    return cast(VectorFormat, import_module(FORMATS[suffix]))


def _find_file(path: str | Path) -> Path:
    path = read_path("path", path)
    if not path.is_file() and not path.is_dir():
        raise DataError(f"there is no file {path}; give the path of a vector file")
    return path


def _conform_all(
    sentences: Iterable[SentenceVectors], *, header: VectorHeader
) -> Iterator[SentenceVectors]:
    for number, sentence in enumerate(sentences):
        yield _conform(sentence, number=number, header=header)


def _conform(sentence: SentenceVectors, *, number: int, header: VectorHeader) -> SentenceVectors:
    """Convert the vectors to the file's dtype, and check their shape."""
    expected = header.vectors_shape(len(sentence.tokens))
    if sentence.vectors.shape != expected:
        raise DataError(
            f"sentence {number} has vectors of shape {sentence.vectors.shape}; "
            f"its {len(sentence.tokens)} tokens and the header require {expected}"
        )
    vectors = sentence.vectors
    if vectors.dtype == header.computed_dtype and vectors.flags.c_contiguous:  # nearly always
        return sentence
    try:
        with np.errstate(over="raise"):
            vectors = np.ascontiguousarray(vectors, dtype=header.computed_dtype)
    except FloatingPointError:
        raise DataError(
            f"sentence {number} has values too large for {header.dtype}; write f32"
        ) from None
    return replace(sentence, vectors=vectors)


def _flush_now_and_then(
    sentences: Iterator[SentenceVectors], path: Path, *, flush_bytes: int
) -> Iterator[SentenceVectors]:
    num_bytes = 0
    for sentence in sentences:
        yield sentence
        num_bytes += sentence.vectors.nbytes
        if num_bytes >= flush_bytes:
            flush_to_disk(path)
            num_bytes = 0


def _find_header(path: Path, sentences: Sequence[SentenceVectors]) -> VectorHeader:
    """Return the header, or make one for a file of AllenNLP or bilm-tf, which has none."""
    try:
        return read_header(path)
    except DataError:
        if not sentences:
            raise
    vectors = sentences[0].vectors
    return VectorHeader(
        model="",
        model_hash="",
        state="",
        layers="",
        dtype=str(vectors.dtype),
        num_layers=len(vectors) if vectors.ndim == 3 else None,
        vector_dim=vectors.shape[-1],
    )


@contextmanager
def _explaining_read_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise DataError(f"no permission to read {path}; change its permissions") from error
    except DAMAGE as error:
        reason = " ".join(str(error).split())  # pyarrow's errors have several lines
        raise DataError(
            f"{path} is damaged or not a vector file ({reason:.300}); write it again"
        ) from error


def _read_part(path: Path) -> Iterator[SentenceVectors]:
    with _explaining_read_errors(path):
        yield from _find_format(path).read(path)
