import json

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from elmore.embed import token_rows
from elmore.embed.vector_file import (
    SentenceVectors,
    VectorHeader,
    read_header,
    read_vectors,
    write_vector_file,
)
from elmore.errors import DataError


def write(path, num_tokens: list[int], *, dtype="float32", num_layers=None) -> list[np.ndarray]:
    """Write sentences of these lengths; return their vectors."""
    header = VectorHeader(
        model="tiny",
        model_hash="0123",
        state="reset",
        layers="all",
        dtype=dtype,
        num_layers=num_layers,
        vector_dim=2,
    )
    random = np.random.default_rng(seed=0)
    vectors = [random.standard_normal(header.vectors_shape(n)).astype(dtype) for n in num_tokens]
    sentences = [
        SentenceVectors(tokens=[f"token{position}" for position in range(n)], vectors=each)
        for n, each in zip(num_tokens, vectors, strict=True)
    ]
    write_vector_file(path, sentences, header=header)
    return vectors


def test_a_row_is_a_token(tmp_path):
    path = tmp_path / "out.parquet"
    vectors = write(path, [2, 0, 1])
    table = parquet.read_table(path).to_pydict()
    assert table["sentence"] == [0, 0, 2]
    assert table["position"] == [0, 1, 0]
    assert table["token"] == ["token0", "token1", "token0"]
    assert table["vector"] == np.concatenate(vectors).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_each_layer_is_a_column(tmp_path, dtype):
    path = tmp_path / "out.parquet"
    vectors = write(path, [2], dtype=dtype, num_layers=3)
    table = parquet.read_table(path)
    assert table.column_names == [
        *("sentence", "line", "position", "token"),
        *("layer_0", "layer_1", "layer_2"),
    ]
    expected = pyarrow.list_(pyarrow.from_numpy_dtype(dtype), 2)
    assert table.schema.field("layer_1").type == expected
    assert table["layer_2"].to_pylist() == vectors[0][2].tolist()


@pytest.mark.parametrize("num_layers", [None, 2])
def test_row_groups_are_bounded_and_cut_sentences_come_back_whole(
    tmp_path, monkeypatch, num_layers
):
    monkeypatch.setattr(token_rows, "MAX_ROWS_PER_GROUP", 4)
    path = tmp_path / "out.parquet"
    vectors = write(path, [3, 13, 0, 1, 4, 2, 2], num_layers=num_layers)
    metadata = parquet.read_metadata(path)
    sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    assert max(sizes) == 4
    assert sum(sizes) == 25
    found = list(read_vectors(path))
    assert [len(sentence.tokens) for sentence in found] == [3, 13, 0, 1, 4, 2, 2]
    assert found[1].tokens[-1] == "token12"
    table = parquet.read_table(path)
    lengths = [(0, 3), (1, 13), (3, 1), (4, 4), (5, 2), (6, 2)]
    assert table["sentence"].to_pylist() == [number for number, n in lengths for _ in range(n)]
    assert table["position"].to_pylist() == [at for _, n in lengths for at in range(n)]
    for sentence, expected in zip(found, vectors, strict=True):
        assert np.array_equal(sentence.vectors, expected)


def test_texts_too_long_for_one_column_of_arrow_come_back_too(tmp_path, monkeypatch):
    monkeypatch.setattr(token_rows, "MAX_STRING_BYTES", 12)
    for num_tokens in (2, 3):  # of 6 bytes
        write(tmp_path / "out.parquet", [num_tokens])
        (found,) = read_vectors(tmp_path / "out.parquet")
        assert found.tokens == ["token0", "token1", "token2"][:num_tokens]


def test_wide_vectors_make_smaller_row_groups():
    header = VectorHeader(
        model="",
        model_hash="",
        state="",
        layers="all",
        dtype="float32",
        num_layers=3,
        vector_dim=1024,
    )
    assert token_rows.rows_per_group(header) == 651  # 8 MB


@pytest.mark.parametrize("num_tokens", [[], [0], [0, 0, 1], [1, 0, 0], [0, 1, 0, 0, 1, 0]])
def test_empty_sentences_are_counted(tmp_path, num_tokens):
    path = tmp_path / "out.parquet"
    write(path, num_tokens)
    assert [len(sentence.tokens) for sentence in read_vectors(path)] == num_tokens
    header = json.loads(parquet.read_metadata(path).metadata[b"elmore"])
    assert header["num_sentences"] == len(num_tokens)


def test_a_file_of_another_program_is_refused(tmp_path):
    path = tmp_path / "other.parquet"
    parquet.write_table(pyarrow.table({"token": ["a"]}), path)
    for use in (read_header, lambda path: list(read_vectors(path))):
        with pytest.raises(DataError, match="no metadata 'elmore'"):
            use(path)


@pytest.mark.parametrize("numbers", [[0, 10**15], [0, 2], [1, 0], [-3, 1]])
def test_a_sentence_that_is_out_of_place_is_refused(tmp_path, numbers):
    path = tmp_path / "out.parquet"
    write(path, [1, 1])
    table = parquet.read_table(path)
    moved = table.set_column(0, "sentence", pyarrow.array(numbers, pyarrow.int64()))
    about = parquet.read_metadata(path).metadata[b"elmore"]
    parquet.write_table(moved.replace_schema_metadata({"elmore": about}), path)
    with pytest.raises(DataError, match="of 2 is out of place"):
        for _, _ in zip(range(10), read_vectors(path), strict=False):
            pass
