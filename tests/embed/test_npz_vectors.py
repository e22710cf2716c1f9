import json
import zipfile

import numpy as np
import pytest

from elmore.embed import npz_vectors
from elmore.embed.token_escapes import split_escaped
from elmore.embed.vector_file import (
    SentenceVectors,
    VectorHeader,
    read_header,
    read_vectors,
    write_vector_file,
)
from elmore.errors import DataError


def write(path, sentences: list[list[str]], *, compress=False) -> None:
    header = VectorHeader(
        model="tiny",
        model_hash="0123",
        state="reset",
        layers="average",
        dtype="float32",
        num_layers=None,
        vector_dim=2,
    )
    all_vectors = [np.full((len(tokens), 2), n, "float32") for n, tokens in enumerate(sentences)]
    write_vector_file(
        path,
        [
            SentenceVectors(tokens=tokens, vectors=vectors)
            for tokens, vectors in zip(sentences, all_vectors, strict=True)
        ],
        header=header,
        compress=compress,
    )


@pytest.mark.parametrize("compress", [False, True])
def test_numpy_reads_all_of_it_without_pickle(tmp_path, compress):
    path = tmp_path / "out.npz"
    write(path, [["the", "bank"], [], ["a\u2028b\nc"]], compress=compress)
    with np.load(path, allow_pickle=False) as arrays:
        assert arrays.files == ["header", "0", "1", "2", "sentences", "line"]
        assert arrays["0"].tolist() == [[0.0, 0.0], [0.0, 0.0]]
        assert arrays["1"].shape == (0, 2)
        assert json.loads(str(arrays["header"]))["model"] == "tiny"
        lines = arrays["sentences"].tobytes().decode().split("\n")[:-1]
    assert lines == ["the\tbank", "", "a\u2028b\\nc"]
    assert split_escaped(lines[2]) == ["a\u2028b\nc"]


def test_equal_sentences_make_equal_files(tmp_path):
    for name in ("one.npz", "two.npz"):
        write(tmp_path / name, [["a"], ["b"]])
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def test_arrays_are_written_to_the_bytes_that_zipfile_would_write(tmp_path, monkeypatch):
    sentences = [["a"], [], ["b", "c"] * 9]
    write(tmp_path / "ours.npz", sentences)
    monkeypatch.setattr(npz_vectors, "_append_array", npz_vectors._write_array)
    write(tmp_path / "theirs.npz", sentences)
    assert (tmp_path / "ours.npz").read_bytes() == (tmp_path / "theirs.npz").read_bytes()


def test_text_too_large_for_memory_goes_by_way_of_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(npz_vectors, "MAX_BUFFER_BYTES_IN_MEMORY", 10)
    write(tmp_path / "out.npz", [[f"token{number}"] for number in range(20)])
    found = [sentence.tokens for sentence in read_vectors(tmp_path / "out.npz")]
    assert found == [[f"token{number}"] for number in range(20)]
    assert [path.name for path in tmp_path.iterdir()] == ["out.npz"]


def test_members_may_pass_four_gigabytes(tmp_path):
    write(tmp_path / "out.npz", [["a"]])
    with zipfile.ZipFile(tmp_path / "out.npz") as archive:
        # Version 4.5 of the zip format, which is what 64-bit sizes need.
        assert {member.extract_version for member in archive.infolist()} == {45}


def test_a_file_of_another_program_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", weights=np.zeros(3))
    for use in (read_header, lambda path: list(read_vectors(path))):
        with pytest.raises(DataError, match="elmore did not write it"):
            use(tmp_path / "other.npz")
