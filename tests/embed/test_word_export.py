"""Static word vectors: their numbers, and the files of word2vec's formats."""

from pathlib import Path

import numpy as np
import pytest

import elmore
from elmore.embed.word2vec_file import fits_word2vec
from elmore.errors import DataWarning
from elmore.text.word_vectors import read_word_vectors
from tests.tiny import TRAINED_MODEL

TEXT = ["The bank of the river .", "A bank .", "The river rose ."]


@pytest.fixture(scope="module")
def embedder():
    return elmore.load(TRAINED_MODEL)


def test_words_without_a_text_are_those_of_the_token_layer(embedder):
    table = elmore.word_vectors(["bank", "river", "bank"], model=embedder)
    assert table.words == ("bank", "river")
    for sentence in (["A", "bank"], ["bank", "river"]):  # whatever is around it
        position = sentence.index("bank")
        assert np.array_equal(table.vectors[0], embedder.embed([sentence], layers=0)[0][position])


@pytest.mark.parametrize("layers", [None, "top", 1])
def test_words_of_a_text_are_the_mean_over_their_uses(embedder, layers):
    table = elmore.word_vectors(text=TEXT, model=embedder, layers=layers)
    tokens = [token for text in TEXT for token in text.split()]
    vectors = np.concatenate(embedder.embed(TEXT, layers=layers or "average")).astype(np.float64)
    assert set(table.words) == set(tokens)
    for word, found in zip(table.words, table.vectors, strict=True):
        expected = vectors[[token == word for token in tokens]].mean(axis=0)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_frequent_words_come_first(embedder):
    def words(**how):
        return elmore.word_vectors(text=TEXT, model=embedder, **how).words

    assert words()[:4] == (".", "The", "bank", "river")
    assert words(min_count=2) == (".", "The", "bank", "river")
    assert words(max_words=2) == (".", "The")


def test_a_text_may_be_a_file_or_used_up_once(embedder, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(TEXT) + "\n")
    expected = elmore.word_vectors(text=TEXT, model=embedder)
    for text in (path, str(path), iter(TEXT)):
        form = "tokenized" if not hasattr(text, "__next__") else None
        found = elmore.word_vectors(text=text, model=embedder, form=form)
        assert found.words == expected.words
        assert np.array_equal(found.vectors, expected.vectors)


def test_words_that_do_not_occur_are_left_out_with_a_warning(embedder):
    with pytest.warns(DataWarning, match="1 of 2 words do not occur in the text.*'sea'"):
        table = elmore.word_vectors(["sea", "bank"], text=TEXT, model=embedder)
    assert table.words == ("bank",)


@pytest.mark.parametrize("suffix", [".txt", ".vec"])
def test_text_files_hold_every_bit(embedder, tmp_path, suffix):
    path = tmp_path / f"words{suffix}"
    table = elmore.export_words(path, text=TEXT, model=embedder)
    found = read_word_vectors(path)
    assert found.words == table.words
    assert np.array_equal(found.vectors, table.vectors)


def test_binary_files_follow_the_format(embedder, tmp_path):
    path = tmp_path / "words.bin"
    table = elmore.export_words(path, ["café", "bank"], model=embedder)
    head, rest = path.read_bytes().split(b"\n", maxsplit=1)
    assert head.split() == [b"2", str(table.vector_dim).encode()]
    for word, vector in zip(table.words, table.vectors, strict=True):
        start = f"{word} ".encode()
        end = len(start) + 4 * table.vector_dim
        assert rest[: len(start)] == start
        assert np.array_equal(np.frombuffer(rest[len(start) : end], "<f4"), vector)
        assert rest[end : end + 1] == b"\n"
        rest = rest[end + 1 :]
    assert rest == b""


def test_words_with_white_space_are_left_out(embedder, tmp_path):
    assert not any(map(fits_word2vec, ["New York", "a\tb", "a\nb", "", "\u3000", "\ud83d"]))
    path = tmp_path / "words.vec"
    with pytest.warns(DataWarning, match="1 of 2 words contain white space.*'New York'"):
        table = elmore.export_words(path, ["New York", "bank"], model=embedder)
    assert table.words == read_word_vectors(path).words == ("bank",)
    with pytest.raises(elmore.ElmoreError, match="no word is left"):
        elmore.export_words(path, ["New York"], model=embedder)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({}, "neither words nor text"),
        ({"words": []}, "no words"),
        ({"words": ["a", 1]}, "a word is 1"),
        ({"words": ["a"], "layers": "top"}, "only layer 0 exists"),
        ({"text": TEXT, "layers": "all"}, "one vector per token"),
        ({"text": TEXT, "min_count": 0}, "min_count is 0"),
        ({"text": TEXT, "min_count": 50}, "no word occurs 50 times .* a smaller min_count"),
        ({"words": ["sea"], "text": TEXT}, "none of the words"),
        ({"text": "no-such-file.txt"}, "no-such-file"),
        ({"words": "no-such-file.txt"}, "no-such-file"),
    ],
    ids=repr,
)
def test_mistakes_are_one_sentence_and_write_nothing(embedder, tmp_path, how, message):
    with pytest.raises(elmore.ElmoreError, match=message):
        elmore.export_words(tmp_path / "out.vec", model=embedder, **how)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_suffix_is_refused_before_any_work(tmp_path):
    with pytest.raises(elmore.ElmoreError, match=r"unknown suffix '\.kv'"):
        elmore.export_words(tmp_path / "out.kv", ["a"], model=Path("no-such-model"))
