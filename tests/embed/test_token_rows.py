"""Vector files as tables of Arrow, pandas, polars and DuckDB."""

import json

import h5py
import numpy as np
import pytest

import elmore
from elmore import ElmoreError, extras
from elmore.embed.vector_file import SentenceVectors, VectorHeader, read_vectors, write_vector_file
from tests.tiny import TRAINED_MODEL

pyarrow = pytest.importorskip("pyarrow", reason="needs elmore[parquet]")

SENTENCES = [["A", "bank", "."], [], ["back\\slash", "\t", "", "\ud83d", "中国"], ["bank"]]
TOKENS = ["A", "bank", ".", "back\\slash", "\t", "", "\\ud83d", "中国", "bank"]


@pytest.fixture(scope="module")
def embedder():
    return elmore.load(TRAINED_MODEL)


def write(embedder, path, **how):
    elmore.embed_to_file(embedder, SENTENCES, path, **how)
    return elmore.read_vectors(path)


@pytest.mark.parametrize("suffix", ["h5", "parquet", "npz"])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_every_file_gives_the_same_table(embedder, tmp_path, suffix, dtype):
    read = write(embedder, tmp_path / f"v.{suffix}", dtype=dtype)
    table = read.to_arrow()
    assert table.column_names == ["sentence", "line", "position", "token", "vector"]
    assert table["token"].to_pylist() == TOKENS
    assert table["sentence"].to_pylist() == [0] * 3 + [2] * 5 + [3]
    assert table["line"].to_pylist() == [1] * 3 + [3] * 5 + [4]
    assert table["position"].to_pylist() == [0, 1, 2, 0, 1, 2, 3, 4, 0]
    assert table.schema.field("vector").type.list_size == embedder.vector_dim
    vectors = table["vector"].combine_chunks().flatten().to_numpy().reshape(len(TOKENS), -1)
    expected = np.concatenate(embedder.embed(SENTENCES))
    assert np.array_equal(vectors, expected if dtype == "f32" else expected.astype(np.float16))


def test_a_table_has_the_whole_file_after_some_sentences_were_read(embedder, tmp_path):
    read = write(embedder, tmp_path / "v.npz")
    assert next(read).tokens == SENTENCES[0]
    assert read.to_arrow().num_rows == len(TOKENS)
    assert [sentence.tokens for sentence in read] == SENTENCES[1:]


def test_chosen_layers_are_columns(embedder, tmp_path):
    layers = embedder.embed(SENTENCES, layers=[0, 2])
    table = write(embedder, tmp_path / "v.h5", layers=[0, 2]).to_arrow()
    for index, name in enumerate(["layer_0", "layer_2"]):
        expected = np.concatenate([array[index] for array in layers])
        assert np.array_equal(np.stack(table[name].to_pandas()), expected)


def test_pandas(embedder, tmp_path):
    pytest.importorskip("pandas", reason="needs elmore[pandas]")
    frame = write(embedder, tmp_path / "v.parquet").to_pandas()
    assert frame["token"].tolist() == TOKENS
    assert np.array_equal(np.stack(frame["vector"]), np.concatenate(embedder.embed(SENTENCES)))


def test_polars(embedder, tmp_path):
    pytest.importorskip("polars", reason="needs elmore[polars]")
    frame = write(embedder, tmp_path / "v.npz").to_polars()
    assert frame["token"].to_list() == TOKENS
    assert np.array_equal(frame["vector"].to_numpy(), np.concatenate(embedder.embed(SENTENCES)))


def test_duckdb_reads_a_table_in_memory(embedder, tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="needs elmore[duckdb]")
    table = write(embedder, tmp_path / "v.h5").to_arrow()
    connection = duckdb.connect()
    connection.register("vectors", table)
    rows = connection.execute(
        "SELECT sentence, vector FROM vectors WHERE token = 'bank'"
    ).fetchall()
    expected = [embedder.embed(SENTENCES)[number][place] for number, place in ((0, 1), (3, 0))]
    assert [number for number, _ in rows] == [0, 3]
    assert np.array_equal(np.array([vector for _, vector in rows], np.float32), expected)


def test_files_of_allennlp_have_no_header_but_a_table(embedder, tmp_path):
    layers = embedder.embed([["A", "bank"]], layers="all")[0]
    with h5py.File(tmp_path / "allennlp.hdf5", "w") as file:
        file["0"] = layers
        index = json.dumps({"A bank": "0"})
        file.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())[0] = index
    table = elmore.read_vectors(tmp_path / "allennlp.hdf5").to_arrow()
    assert table["token"].to_pylist() == ["A", "bank"]
    assert np.array_equal(np.stack(table["layer_1"].to_pandas()), layers[1])


def test_an_empty_file_is_an_empty_table(embedder, tmp_path):
    elmore.embed_to_file(embedder, [[]], tmp_path / "v.npz")
    table = elmore.read_vectors(tmp_path / "v.npz").to_arrow()
    assert (table.num_rows, table.num_columns) == (0, 5)


@pytest.mark.parametrize("name", ["pandas", "polars"])
@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (None, r"^a table of {name} needs an optional library: pip install 'elmore\[{name}\]'$"),
        ("0.9", r"^{name} 0\.9 is installed, but a table of {name} needs {name}>=\d"),
    ],
)
def test_a_missing_or_old_library_is_named(
    embedder, tmp_path, monkeypatch, name, version, expected
):
    read = write(embedder, tmp_path / "v.npz")
    monkeypatch.setattr(extras, "_find_version", lambda _: version)
    with pytest.raises(ElmoreError, match=expected.format(name=name)):
        getattr(read, f"to_{name}")()


def test_int8_vectors_are_off_by_half_a_step(tmp_path):
    random = np.random.default_rng(0)
    vectors = (random.normal(size=(3, 5, 8)) * [[[0.01]], [[1]], [[100]]]).astype(np.float32)
    vectors[0, 2] = 0
    header = VectorHeader(
        model="", model_hash="", state="reset", layers="all", dtype="int8", num_layers=3,
        vector_dim=8,
    )  # fmt: skip
    sentence = SentenceVectors(tokens=list("abcde"), vectors=vectors, line=1)
    write_vector_file(tmp_path / "v.parquet", [sentence], header=header)
    (found,) = read_vectors(tmp_path / "v.parquet")
    steps = np.abs(vectors).max(axis=-1, keepdims=True) / 127
    assert found.vectors.dtype == np.float32
    assert (np.abs(found.vectors - vectors) <= steps * 0.501).all()
    table = read_vectors(tmp_path / "v.parquet").to_arrow()
    assert table["layer_2"].type == pyarrow.list_(pyarrow.float32(), 8)


def test_int8_vectors_need_a_byte_per_number(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(5000, 64)).astype(np.float32)
    sizes = {}
    for dtype in ("float32", "float16", "int8"):
        header = VectorHeader(
            model="", model_hash="", state="reset", layers="top", dtype=dtype, num_layers=None,
            vector_dim=64,
        )  # fmt: skip
        sentence = SentenceVectors(tokens=["a"] * 5000, vectors=vectors, line=1)
        write_vector_file(tmp_path / "v.parquet", [sentence], header=header)
        sizes[dtype] = (tmp_path / "v.parquet").stat().st_size / 5000
    assert sizes["float32"] - sizes["float16"] == pytest.approx(128, abs=2)
    assert sizes["float32"] - sizes["int8"] == pytest.approx(192 - 4, abs=4)  # 4: the scale
