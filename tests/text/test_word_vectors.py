import gzip

import numpy as np
import pytest

from elmore.errors import DataError
from elmore.text.word_vectors import WordVectors, read_word_vectors

TEXT = "the 1 2.5\nThe -1 0\n. . . 3 4\nbank 5e-1 6\nthe 9 9\n"


@pytest.fixture
def vectors():
    return WordVectors(
        words=("the", "The", "bank", "the"),
        vectors=np.array([[1, 2], [3, 4], [5, 6], [7, 8]], dtype=np.float32),
    )


def test_a_token_is_found_as_spelled_or_else_in_lower_case(vectors):
    assert [vectors.find(token) for token in ["the", "The", "THE", "Bank", "x"]] == [
        0,
        1,
        0,
        2,
        None,
    ]


def test_unknown_tokens_are_zeros(vectors):
    np.testing.assert_array_equal(vectors.embed(["BANK", "x", "The"]), [[5, 6], [0, 0], [3, 4]])
    assert vectors.embed([]).shape == (0, 2)
    assert vectors.embed(["x"]).dtype == np.float32


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
def test_lines_are_words_and_numbers(tmp_path, suffix):
    path = tmp_path / f"glove{suffix}"
    path.write_bytes(TEXT.encode() if suffix == ".txt" else gzip.compress(TEXT.encode()))
    read = read_word_vectors(path)
    assert read.words == ("the", "The", ". . .", "bank", "the")
    assert read.vectors.dtype == np.float32
    np.testing.assert_array_equal(read.vectors, [[1, 2.5], [-1, 0], [3, 4], [0.5, 6], [9, 9]])


def test_the_counts_of_word2vec_are_not_a_word(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("2 3\na 1 2 3 \nb 4 5 6 \n")
    assert read_word_vectors(path).words == ("a", "b")


def test_arrays_are_read_in_single_precision(tmp_path):
    path = tmp_path / "glove.npz"
    np.savez(path, words=np.array(["a", "b"]), vectors=np.ones((2, 3), dtype=np.float16))
    read = read_word_vectors(path)
    assert (read.words, read.vectors.dtype, read.vectors.shape) == (("a", "b"), np.float32, (2, 3))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a 1 2\nb 1\n", "line 2: expected a word and 2 numbers, got 'b 1'"),
        ("a 1 2\n\nb 1 x\n", "line 3: expected a word and 2 numbers"),
        ("a 1 2\n1 2\n", "line 2: expected"),
        ("word\n", "line 1: expected a word and some numbers"),
        ("a 1 nan\n", "line 1: the vector of 'a'"),
        ("", "has no word vectors"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, text, complaint):
    path = tmp_path / "glove.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=complaint):
        read_word_vectors(path)


@pytest.mark.parametrize(
    ("arrays", "complaint"),
    [
        ({"words": np.array(["a"])}, "lacks an array"),
        ({"words": np.array(["a"]), "vectors": np.ones((2, 3))}, "expected V strings"),
        ({"words": np.array([1, 2]), "vectors": np.ones((2, 3))}, "expected V strings"),
        ({"words": np.array(["a"], dtype=object), "vectors": np.ones((1, 3))}, "cannot read"),
        ({"words": np.array(["a", "b"]), "vectors": np.array([[1.0], [np.inf]])}, r"'b' \(row 1\)"),
    ],
)
def test_wrong_arrays_are_named(tmp_path, arrays, complaint):
    path = tmp_path / "glove.npz"
    np.savez(path, **arrays)
    with pytest.raises(DataError, match=complaint):
        read_word_vectors(path)


def test_what_is_not_an_archive_is_called_so(tmp_path):
    path = tmp_path / "glove.npz"
    path.write_bytes(b"no archive")
    with pytest.raises(DataError, match="cannot read"):
        read_word_vectors(path)
    with path.open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(DataError, match="cannot read"):
        read_word_vectors(path)
    with pytest.raises(DataError, match="there is no file"):
        read_word_vectors(tmp_path / "other.npz")


def test_numbers_that_single_precision_cannot_hold_are_refused(tmp_path):
    np.savez(tmp_path / "v.npz", words=np.array(["a"]), vectors=np.array([[1e300, 0.0]]))
    with pytest.raises(DataError, match="not finite"):
        read_word_vectors(tmp_path / "v.npz")
