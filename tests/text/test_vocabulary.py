import pytest

from elmore.errors import DataError, ModelError
from elmore.text.vocabulary import (
    WordLookup,
    fits_word_list,
    number_entries,
    order_entries,
    read_entries,
    read_word_list,
    write_entries,
)

IDS = {"<S>": 0, "</S>": 1, "<UNK>": 2, "bank": 3}


def lookup(**settings):
    return WordLookup(IDS, begin="<S>", end="</S>", unknown="<UNK>", **settings)


def test_a_word_outside_the_list_is_unknown():
    assert [lookup().find(word) for word in ("bank", "river", "", "BANK")] == [3, 2, 2, 2]


def test_a_long_word_is_looked_up_by_its_beginning():
    assert lookup(max_chars=4).find("bankrupt") == 3
    assert lookup().find("bankrupt") == 2


def test_a_list_without_its_marks_is_refused():
    with pytest.raises(ModelError, match="lacks '<UNK>'"):
        WordLookup({"<S>": 0, "</S>": 1}, begin="<S>", end="</S>", unknown="<UNK>")


def test_a_list_comes_back_from_its_file(tmp_path):
    entries = ["<S>", "", "\u3000", "a b", "\u2028", "\x85", '"', "ünï"]
    write_entries(tmp_path / "words.txt", entries)
    assert read_entries(tmp_path / "words.txt") == entries


def test_windows_line_ends_are_not_part_of_a_word(tmp_path):
    (tmp_path / "words.txt").write_bytes(b"<S>\r\nbank\r\n")
    assert read_entries(tmp_path / "words.txt") == ["<S>", "bank"]


def test_ids_and_lists_are_two_sides_of_one_thing():
    ids = {"a": 0, "c": 2}
    assert order_entries(ids, size=4) == ["a", "", "c", ""]
    assert number_entries(order_entries(ids, size=4)) == ids


def test_mistakes_are_named(tmp_path):
    with pytest.raises(DataError, match="'a' is in the vocabulary twice, on lines 1 and 3"):
        number_entries(["a", "b", "a"])
    with pytest.raises(ModelError, match="'a' has id 7, but there are only 2 vectors"):
        order_entries({"a": 7}, size=2)
    with pytest.raises(ModelError, match="'b' and 'a' have the same id 0"):
        order_entries({"a": 0, "b": 0}, size=2)
    with pytest.raises(DataError, match="No such file"):
        read_entries(tmp_path / "none.txt")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    with pytest.raises(DataError, match=r"not UTF-8 \(byte 3\)"):
        read_entries(tmp_path / "latin.txt")


def test_a_word_list_has_the_three_marks_anywhere(tmp_path):
    path = tmp_path / "words.txt"
    write_entries(path, ["bank", "</S>", "<UNK>", "<S>"])
    assert read_word_list(path) == ["bank", "</S>", "<UNK>", "<S>"]
    write_entries(path, ["bank", "<UNK>"])
    with pytest.raises(DataError, match=r"words\.txt lacks <S>, </S>; add each"):
        read_word_list(path)


def test_a_word_that_would_not_come_back_does_not_fit():
    words = ["bank", "a b", " a", "a\u3000", "a\r", "a\rb", "", "\u2028"]
    assert [word for word in words if fits_word_list(word)] == ["bank", "a b"]
