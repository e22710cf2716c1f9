import pytest

from elmore.text.word_vectors import read_word_vectors


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("The bank rose. The river rose.\n")
    (tmp_path / "words.txt").write_text("bank\n\nriver\n")
    return tmp_path


def test_a_list_of_words(folder, elmore_command):
    result = elmore_command("export-words", "--words", "words.txt", "--out", "out.vec")
    assert (result.status, result.out) == (0, "")
    assert "wrote out.vec: 2 words, 48 numbers each" in result.err
    assert read_word_vectors(folder / "out.vec").words == ("bank", "river")


def test_the_words_of_a_text(folder, elmore_command):
    arguments = ["--text", "text.txt", "--min-count", "2", "--max-words", "2", "--layers", "1"]
    result = elmore_command("export-words", *arguments, "--out", "out.txt", "--json")
    assert result.json == {"written": "out.txt", "words": 2, "vector_dim": 48}
    assert read_word_vectors(folder / "out.txt").words == (".", "The")


def test_tokenized_text(folder, elmore_command):
    arguments = ["--text", "text.txt", "--tokenized", "--out", "out.txt"]
    assert elmore_command("export-words", *arguments).status == 0
    assert "rose." in read_word_vectors(folder / "out.txt").words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --words, --text or both"),
        (["--text", "-"], "must be a file"),
        (["--words", "missing.txt"], "missing.txt"),
        (["--words", "words.txt", "--layers", "1"], "only layer 0 exists"),
        (
            ["--text", "text.txt", "--layers", "5"],
            "average, sum, top or a layer number from 0 to 2\n",
        ),
    ],
    ids=repr,
)
def test_mistakes_are_one_sentence(folder, elmore_command, arguments, message):
    result = elmore_command("export-words", *arguments, "--out", "out.vec")
    assert result.status == 2
    assert message in result.err
    assert not (folder / "out.vec").exists()
