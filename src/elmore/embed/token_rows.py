"""Tables of Arrow with one row per token: in Parquet files, and for pandas, polars and DuckDB."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmore.embed.vector_file import SentenceVectors, VectorHeader
from elmore.extras import require_extra

require_extra("parquet", needed_for="a table of vectors")

import pyarrow  # noqa: E402

# Writers and readers hold a whole row group in memory.
MAX_ROWS_PER_GROUP = 8192
MAX_BYTES_PER_GROUP = 8_000_000
# Of one column: Arrow's offsets in strings have 32 bits.
MAX_STRING_BYTES = (1 << 31) - 1


def make_table(sentences: Iterable[SentenceVectors], *, header: VectorHeader) -> Any:
    """Return a table of all tokens; sentences without tokens have no rows."""
    sentences = iter(sentences)
    first = list(islice(sentences, 1))
    schema = make_schema(header, texts=text_columns(first))
    rows = TokenRows(schema=schema, max_rows=rows_per_group(header), write_texts=_write_texts)
    tables = [
        table
        for number, sentence in enumerate(chain(first, sentences))
        for table in rows.add(sentence, number=number)
    ]
    return pyarrow.concat_tables([schema.empty_table(), *tables, *rows.flush()])


def _write_texts(texts: Sequence[str]) -> Sequence[str]:
    """Return texts as they are; UTF-8 cannot hold lone surrogates, so they become escapes."""
    return [text.encode("utf-8", errors="backslashreplace").decode() for text in texts]


class TokenRows:
    """Collects rows, and makes a table whenever there are `max_rows`."""

    def __init__(
        self,
        *,
        schema: Any,
        max_rows: int,
        write_texts: Callable[[Sequence[str]], Sequence[str]],
    ) -> None:
        self.schema = schema
        self.max_rows = max_rows
        self.write_texts = write_texts
        self._clear()

    def _clear(self) -> None:
        # One per sentence, or per piece of a long one.
        self.counts: list[int] = []
        self.sentence_numbers: list[int] = []
        self.lines: list[int] = []
        self.keys: list[str] = []
        self.sources: list[str] = []
        self.positions: list[Sequence[int] | NDArray[Any]] = []
        self.vectors: list[NDArray[Any]] = []
        # One per row.
        self.tokens: list[str] = []

    def add(self, sentence: SentenceVectors, *, number: int) -> Iterator[Any]:
        """Add a sentence; yield a table whenever a row group is full."""
        for start in range(0, len(sentence.tokens), self.max_rows):
            piece = slice(start, start + self.max_rows)
            tokens = sentence.tokens[piece]
            if len(self.tokens) + len(tokens) > self.max_rows:
                yield from self.flush()
            self.counts.append(len(tokens))
            self.sentence_numbers.append(number)
            self.lines.append(sentence.line or 0)
            if sentence.key is not None:
                self.keys += self.write_texts([sentence.key])
            if sentence.source is not None:
                self.sources += self.write_texts([sentence.source])
            self.positions.append(
                np.arange(start, start + len(tokens), dtype=np.int32)
                if sentence.positions is None
                else sentence.positions[piece]
            )
            self.tokens += self.write_texts(tokens)
            self.vectors.append(sentence.vectors[..., piece, :])

    def flush(self) -> Iterator[Any]:
        """Yield a table of the remaining rows, if any."""
        if not self.tokens:
            return
        vectors = np.concatenate(self.vectors, axis=-2)  # (rows, D) or (layers, rows, D)
        layers = vectors[np.newaxis] if vectors.ndim == 2 else vectors
        facts = [np.array(column, np.int64) for column in (self.sentence_numbers, self.lines)]
        texts = [np.array(column, object) for column in (self.sources, self.keys) if column]
        columns = [
            *(_to_numbers(np.repeat(column, self.counts)) for column in facts),
            *(_to_strings(np.repeat(column, self.counts).tolist()) for column in texts),
            _to_numbers(np.concatenate(self.positions, dtype=np.int32)),
            _to_strings(self.tokens),
        ]
        if any(name.startswith("scale") for name in self.schema.names):
            scales, layers = quantize(layers)
            columns += map(_to_numbers, scales)
        columns += map(_to_lists, layers)
        yield pyarrow.Table.from_arrays(columns, schema=self.schema)
        self._clear()


def quantize(vectors: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Round (..., D) to whole numbers from -127 to 127 and (...) scales to multiply them with.

    >>> scales, rounded = quantize(np.array([[1.0, -0.5], [0.0, 0.0]], dtype=np.float32))
    >>> rounded.tolist(), (scales * 127).tolist()
    ([[127, -64], [0, 0]], [1.0, 0.0])
    """
    scales = (np.abs(vectors).max(axis=-1) / np.float32(127)).astype(np.float32)
    rounded = np.rint(vectors / np.where(scales == 0, np.float32(1), scales)[..., np.newaxis])
    return scales, rounded.astype(np.int8)


def text_columns(first: Sequence[SentenceVectors]) -> list[str]:
    """Return which columns the first sentence needs besides the usual ones."""
    return [name for name in ("source", "key") if first and getattr(first[0], name) is not None]


def make_schema(header: VectorHeader, *, texts: Sequence[str] = ()) -> Any:
    """Return the columns of a table."""
    vector = pyarrow.list_(pyarrow.from_numpy_dtype(header.dtype), header.vector_dim)
    return pyarrow.schema(
        [
            ("sentence", pyarrow.int64()),
            ("line", pyarrow.int64()),
            *((name, pyarrow.string()) for name in texts),
            ("position", pyarrow.int32()),
            ("token", pyarrow.string()),
            *((name, pyarrow.float32()) for name in scale_columns(header)),
            *((name, vector) for name in vector_columns(header)),
        ]
    )


def vector_columns(header: VectorHeader) -> list[str]:
    """Return the names of the columns with vectors."""
    if header.num_layers is None:
        return ["vector"]
    chosen = header.layers.split(",")  # such as 0,2
    numbers = chosen if len(chosen) == header.num_layers else range(header.num_layers)
    return [f"layer_{number}" for number in numbers]


def scale_columns(header: VectorHeader) -> list[str]:
    """Return the names of the columns with scales, which only int8 vectors have."""
    if header.dtype != "int8":
        return []
    return [
        name.replace("vector", "scale").replace("layer", "scale") for name in vector_columns(header)
    ]


def rows_per_group(header: VectorHeader) -> int:
    """Return how many rows are held in memory at a time."""
    bytes_per_row = np.dtype(header.dtype).itemsize * header.vector_dim * (header.num_layers or 1)
    return max(1, min(MAX_ROWS_PER_GROUP, MAX_BYTES_PER_GROUP // bytes_per_row))


# Columns are made of their buffers, because `pyarrow.array` would import pandas if it is installed,
# which takes 0.3 seconds.


def _to_numbers(array: NDArray[Any]) -> Any:
    """Turn an array into a column, or into the components of one."""
    numbers = np.ascontiguousarray(array).reshape(-1)
    return pyarrow.Array.from_buffers(
        pyarrow.from_numpy_dtype(numbers.dtype), len(numbers), [None, pyarrow.py_buffer(numbers)]
    )


def _to_strings(texts: Sequence[str]) -> Any:
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)])
    if ends[-1] > MAX_STRING_BYTES:
        return pyarrow.array(texts, pyarrow.string())  # in several pieces
    buffers = [None, pyarrow.py_buffer(ends.astype(np.int32)), pyarrow.py_buffer(b"".join(encoded))]
    return pyarrow.Array.from_buffers(pyarrow.string(), len(encoded), buffers)


def _to_lists(vectors: NDArray[Any]) -> Any:
    """Turn (rows, D) into a column of lists."""
    return pyarrow.FixedSizeListArray.from_arrays(_to_numbers(vectors), vectors.shape[1])
