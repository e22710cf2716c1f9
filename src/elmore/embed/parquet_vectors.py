"""Vectors in Parquet: one row per token, for pandas, polars, DuckDB and the like."""

import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmore.embed.token_escapes import escape_tokens, unescape_token
from elmore.embed.token_rows import (
    TokenRows,
    make_schema,
    rows_per_group,
    scale_columns,
    text_columns,
    vector_columns,
)
from elmore.embed.vector_file import SentenceVectors, VectorHeader
from elmore.errors import DataError
from elmore.extras import require_extra

require_extra("parquet", needed_for="a .parquet file")

from pyarrow import parquet  # noqa: E402

EMPTY_LINES = "elmore_empty_lines"  # metadata: the lines of sentences without tokens


def write(
    path: Path, sentences: Iterable[SentenceVectors], *, header: VectorHeader, compress: bool
) -> None:
    """Write every sentence to a new file at `path`."""
    sentences = iter(sentences)
    first = list(islice(sentences, 1))
    texts = text_columns(first)
    schema = make_schema(header, texts=texts)
    is_rounded = header.dtype == "int8"
    num_sentences = 0
    empty_lines: list[int] = []
    with parquet.ParquetWriter(
        path,
        schema,
        compression="zstd" if compress else "none",
        # For the components of vectors, dictionaries and statistics only cost time. Except in int8:
        # without a dictionary, Parquet stores four bytes per number.
        use_dictionary=[*texts, "token", *(_components(header) if is_rounded else [])],
        write_statistics=["sentence", "line", "position"],
        use_byte_stream_split=_columns_to_split(header) if compress else False,
    ) as writer:
        rows = TokenRows(schema=schema, max_rows=rows_per_group(header), write_texts=escape_tokens)
        for sentence in chain(first, sentences):
            for group in rows.add(sentence, number=num_sentences):
                writer.write_table(group)
            num_sentences += 1
            if not sentence.tokens:
                empty_lines.append(sentence.line or 0)
        for group in rows.flush():
            writer.write_table(group)
        # Known only now, and needed because empty sentences have no rows.
        writer.add_key_value_metadata(
            {
                "elmore": header.to_json(num_sentences=num_sentences),
                EMPTY_LINES: json.dumps(empty_lines, separators=(",", ":")),
            }
        )


def read(path: Path) -> Iterator[SentenceVectors]:
    """Read the sentences in order, including those without tokens."""
    with parquet.ParquetFile(path) as file:
        text = _read_text(path, file)
        header = VectorHeader.from_json(text)
        num_read, num_sentences = 0, json.loads(text)["num_sentences"]
        empty_lines = _read_empty_lines(file)
        for sentence_number, sentence in _join_pieces(_read_pieces(file, header=header)):
            if not num_read <= sentence_number < num_sentences:
                raise ValueError(f"sentence {sentence_number} of {num_sentences} is out of place")
            for _ in range(num_read, sentence_number):
                yield _empty(header, line=next(empty_lines))
            yield sentence
            num_read = sentence_number + 1
        for _ in range(num_read, num_sentences):
            yield _empty(header, line=next(empty_lines))


def read_header(path: Path) -> VectorHeader:
    """Read the metadata key `elmore`."""
    with parquet.ParquetFile(path) as file:
        return VectorHeader.from_json(_read_text(path, file))


def _columns_to_split(header: VectorHeader) -> list[str]:
    """Return the columns that compress better with byte stream split encoding."""
    # DuckDB (2.0) can read float32 but not float16 in this encoding; polars can read both.
    return _components(header) if header.dtype == "float32" else []


def _components(header: VectorHeader) -> list[str]:
    """Return the columns of the components of vectors, as Parquet names them."""
    return [f"{name}.list.element" for name in vector_columns(header)]


def _read_text(path: Path, file: Any) -> str:
    metadata = file.metadata.metadata or {}
    if b"elmore" not in metadata:
        raise DataError(
            f"{path} has no metadata 'elmore', so it was written or changed by another program; "
            "read it with that program"
        )
    return str(metadata[b"elmore"], "ascii")


def _read_pieces(file: Any, *, header: VectorHeader) -> Iterator[tuple[int, SentenceVectors]]:
    """Yield each sentence's rows with its number; a row group's end may split a sentence."""
    for group_number in range(file.num_row_groups):
        group = file.read_row_group(group_number)
        numbers = group["sentence"].to_numpy()
        tokens = group["token"].to_pylist()
        lines = group["line"].to_numpy() if "line" in group.column_names else [0] * len(tokens)
        keys = group["key"].to_pylist() if "key" in group.column_names else None
        sources = group["source"].to_pylist() if "source" in group.column_names else None
        positions = group["position"].to_pylist() if header.words else None
        vectors = np.stack(
            [_from_lists(group[name], header=header) for name in vector_columns(header)]
        )
        if header.dtype == "int8":
            scales = np.stack([group[name].to_numpy() for name in scale_columns(header)])
            vectors = vectors * scales[..., np.newaxis]
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True):
            yield (
                int(numbers[start]),
                SentenceVectors(
                    tokens=[unescape_token(text) for text in tokens[start:end]],
                    vectors=vectors[:, start:end].reshape(header.vectors_shape(end - start)),
                    line=int(lines[start]) or None,
                    key=unescape_token(keys[start]) if keys else None,
                    source=unescape_token(sources[start]) if sources else None,
                    positions=positions[start:end] if positions else None,
                ),
            )


def _from_lists(column: Any, *, header: VectorHeader) -> NDArray[Any]:
    """Turn a column of lists into (rows, D)."""
    components: NDArray[Any] = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return components.reshape(-1, header.vector_dim)


def _join_pieces(
    pieces: Iterator[tuple[int, SentenceVectors]],
) -> Iterator[tuple[int, SentenceVectors]]:
    waiting: tuple[int, SentenceVectors] | None = None
    for number, piece in pieces:
        if waiting is not None and waiting[0] == number:
            waiting = (number, _join(waiting[1], piece))
            continue
        if waiting is not None:
            yield waiting
        waiting = (number, piece)
    if waiting is not None:
        yield waiting


def _join(first: SentenceVectors, second: SentenceVectors) -> SentenceVectors:
    return SentenceVectors(
        tokens=first.tokens + second.tokens,
        vectors=np.concatenate([first.vectors, second.vectors], axis=-2),
        line=first.line,
        key=first.key,
        source=first.source,
        positions=None if first.positions is None else first.positions + (second.positions or []),
    )


def _read_empty_lines(file: Any) -> Iterator[int | None]:
    """Yield the lines of sentences without tokens; None without end if the file has none."""
    stored = file.metadata.metadata.get(EMPTY_LINES.encode())
    if stored is None:
        while True:
            yield None
    yield from (line or None for line in json.loads(stored))
    raise ValueError("there are fewer lines of empty sentences than empty sentences")


def _empty(header: VectorHeader, *, line: int | None) -> SentenceVectors:
    vectors = np.zeros(header.vectors_shape(0), header.computed_dtype)
    return SentenceVectors(tokens=[], vectors=vectors, line=line)
