import json

import h5py
import numpy as np
import pytest

from elmore.embed import hdf5_vectors
from elmore.embed.vector_file import (
    SentenceVectors,
    VectorHeader,
    read_header,
    read_vectors,
    write_vector_file,
)
from elmore.errors import DataError


def write(path, sentences: list[str], *, num_layers=2, compress=False) -> None:
    header = VectorHeader(
        model="tiny",
        model_hash="0123",
        state="reset",
        layers="all",
        dtype="float32",
        num_layers=num_layers,
        vector_dim=3,
    )
    write_vector_file(
        path,
        [
            SentenceVectors(
                tokens=sentence.split(),
                vectors=np.full(header.vectors_shape(len(sentence.split())), number, "float32"),
            )
            for number, sentence in enumerate(sentences)
        ],
        header=header,
        compress=compress,
    )


def read_tokens(path) -> list[list[str]]:
    return [sentence.tokens for sentence in read_vectors(path)]


def test_looks_as_allennlp_wrote_it(tmp_path):
    path = tmp_path / "out.hdf5"
    write(path, ["the bank", "a river bank"])
    with h5py.File(path) as file:
        assert file["0"].shape == (2, 2, 3)
        assert file["1"][1, 2].tolist() == [1.0, 1.0, 1.0]
        assert file["sentence_to_index"].shape == (1,)
        index = json.loads(file["sentence_to_index"][0])
        assert index == {"the bank": "0", "a river bank": "1"}


@pytest.mark.parametrize("num_layers", [None, 2])
def test_datasets_are_those_that_h5py_would_create(tmp_path, monkeypatch, num_layers):
    sentences = ["the bank", "", "a river bank"]
    write(tmp_path / "ours.h5", sentences, num_layers=num_layers)

    def create(self, file, name, vectors):
        file.create_dataset(name, data=vectors)

    monkeypatch.setattr(hdf5_vectors._Plain, "create", create)
    write(tmp_path / "theirs.h5", sentences, num_layers=num_layers)
    assert (tmp_path / "ours.h5").read_bytes() == (tmp_path / "theirs.h5").read_bytes()


def test_mixed_vectors_have_no_layer_dimension(tmp_path):
    path = tmp_path / "out.hdf5"
    write(path, ["the bank"], num_layers=None)
    with h5py.File(path) as file:
        assert file["0"].shape == (2, 3)


def test_h5py_lists_sentences_in_order(tmp_path):
    path = tmp_path / "out.h5"
    write(path, ["a"] * 30)
    with h5py.File(path) as file:
        assert [name for name in file if name.isdecimal()] == [str(n) for n in range(30)]


def test_a_blank_sentence_is_a_dataset_without_tokens(tmp_path):
    path = tmp_path / "out.h5"
    write(path, ["", "a", ""], compress=True)
    with h5py.File(path) as file:
        assert file["0"].shape == (2, 0, 3)
    assert read_tokens(path) == [[], ["a"], []]


def test_of_equal_sentences_the_index_names_the_first_and_all_come_back(tmp_path):
    path = tmp_path / "out.h5"
    write(path, ["a b", "c", "a b"])
    with h5py.File(path) as file:
        assert json.loads(file["sentence_to_index"][0]) == {"a b": "0", "c": "1"}
    assert [s.vectors.flat[0] for s in read_vectors(path)] == [0.0, 1.0, 2.0]
    assert read_tokens(path) == [["a", "b"], ["c"], ["a", "b"]]


def test_the_index_is_left_out_when_the_text_is_large(tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5_vectors, "MAX_INDEXED_CHARACTERS", 12)
    path = tmp_path / "out.h5"
    write(path, ["aaaa", "bbbb", "cccc", "dddd"])
    with h5py.File(path) as file:
        assert "sentence_to_index" not in file
    assert read_tokens(path) == [["aaaa"], ["bbbb"], ["cccc"], ["dddd"]]


@pytest.mark.parametrize("num_sentences", [7, 8, 9])
def test_blocks_of_lines_join_without_a_gap(tmp_path, monkeypatch, num_sentences):
    monkeypatch.setattr(hdf5_vectors, "SENTENCES_PER_BLOCK", 4)
    path = tmp_path / "out.h5"
    sentences = [f"token{number}" for number in range(num_sentences)]
    write(path, sentences)
    assert read_tokens(path) == [[sentence] for sentence in sentences]


def test_compression_is_gzip_with_shuffle(tmp_path):
    path = tmp_path / "out.h5"
    write(path, ["a b"], compress=True)
    with h5py.File(path) as file:
        assert (file["0"].compression, file["0"].compression_opts) == ("gzip", 4)
        assert file["0"].shuffle


def write_foreign(path, num_sentences: int, *, index: dict[str, str] | None) -> None:
    """What AllenNLP's elmo command (with an index) and bilm-tf (without) write."""
    with h5py.File(path, "w") as file:
        for number in range(num_sentences):
            file[str(number)] = np.full((3, 2, 4), number, np.float32)
        if index is not None:
            name = "sentence_to_index"
            data = file.create_dataset(name, (1,), dtype=h5py.string_dtype())
            data[0] = json.dumps(index)


def test_reads_allennlp_in_the_order_of_numbers(tmp_path):
    path = tmp_path / "allennlp.hdf5"
    write_foreign(path, 12, index={f"token {number}": str(number) for number in range(12)})
    found = list(read_vectors(path))
    assert [sentence.tokens for sentence in found] == [["token", str(n)] for n in range(12)]
    assert [sentence.vectors.flat[0] for sentence in found] == list(range(12))


def test_reads_allennlp_where_an_equal_sentence_took_the_text(tmp_path):
    path = tmp_path / "allennlp.hdf5"
    write_foreign(path, 2, index={"same same": "1"})
    assert read_tokens(path) == [["", ""], ["same", "same"]]


def test_reads_bilm_tf_without_text(tmp_path):
    path = tmp_path / "bilm.hdf5"
    write_foreign(path, 1, index=None)
    (sentence,) = read_vectors(path)
    assert sentence.tokens == ["", ""]
    assert sentence.vectors.shape == (3, 2, 4)


def test_a_foreign_file_has_no_header(tmp_path):
    path = tmp_path / "bilm.hdf5"
    write_foreign(path, 1, index=None)
    with pytest.raises(DataError, match="does not say how it was made"):
        read_header(path)


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "weights.hdf5"
    with h5py.File(path, "w") as file:
        file["char_embed"] = np.zeros(3)
    with pytest.raises(DataError, match=r"no datasets named by sentence number"):
        list(read_vectors(path))


@pytest.mark.parametrize("content", [np.zeros(3), None])
def test_numbered_things_that_are_not_vectors_are_refused(tmp_path, content):
    path = tmp_path / "other.hdf5"
    with h5py.File(path, "w") as file:
        if content is None:
            file.create_group("0")
        else:
            file["0"] = content
    with pytest.raises(DataError, match="not a vector file"):
        list(read_vectors(path))


def test_an_error_that_h5py_would_lose_is_raised(tmp_path, monkeypatch):
    # HDF5 writes this small dataset when it is closed; the disk is full only at that moment.
    write_whole = hdf5_vectors._WatchedFile.write
    num_writes = 0

    def fail_once(watched, content):
        nonlocal num_writes
        num_writes += 1
        if num_writes == 3:
            watched.error = OSError(28, "No space left on device")
        return write_whole(watched, content)

    monkeypatch.setattr(hdf5_vectors._WatchedFile, "write", fail_once)
    with pytest.raises(DataError, match="the disk or your quota is full"):
        write(tmp_path / "out.h5", ["a"] * 9)
    assert list(tmp_path.iterdir()) == []
