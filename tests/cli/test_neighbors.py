import pytest
from rich.cells import cell_len

TEXT = """A bank of sand.
The Bank of England.
No such word here.
A bank of sand.
"""


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


def test_the_use_most_like_the_one_asked_for_comes_first(text, elmore_command):
    found = elmore_command("neighbors", "bank", text, "--in", "A bank of sand.", "--json").json
    assert [neighbor["context"]["sentence"] for neighbor in found] == [0, 3, 1]
    assert found[0]["similarity"] == pytest.approx(1.0, abs=1e-6)


def test_without_a_sentence_the_closest_pairs_are_shown(text, elmore_command):
    pairs = elmore_command("neighbors", "BANK", text, "--json").json
    assert (pairs[0]["context"]["sentence"], pairs[0]["other"]["sentence"]) == (0, 3)
    assert pairs[0]["similarity"] == pytest.approx(1.0, abs=1e-6)
    assert len(pairs) == 2


def test_the_table_marks_the_word(text, elmore_command):
    result = elmore_command("neighbors", "bank", text, "--in", "The bank.", "--top", "2")
    assert result.out.count("[bank]") + result.out.count("[Bank]") == 2


def test_a_word_that_is_not_there(text, elmore_command):
    result = elmore_command("neighbors", "river", text)
    assert (result.status, result.out) == (0, "")
    assert result.err.endswith("'river' does not occur in the text\n")
    result = elmore_command("neighbors", "river", text, "--in", "A river.")
    assert (result.status, result.out) == (0, "")
    assert result.err.endswith("'river' does not occur in the text\n")
    result = elmore_command("neighbors", "river", text, "--in", "A bank.")
    assert result.status == 2
    assert "does not contain the word 'river'" in result.err


def test_a_word_that_occurs_once_has_no_pair(text, elmore_command):
    result = elmore_command("neighbors", "england", text)
    assert (result.status, result.out) == (0, "")
    assert result.err.endswith(
        "'england' occurs only once in the text, so it has no pair of uses\n"
    )


def test_all_layers_cannot_be_compared(text, elmore_command):
    for layers in ("all", "0,2", "5"):
        result = elmore_command("neighbors", "bank", text, "--layers", layers)
        assert (result.status, result.out) == (2, "")
        assert (
            f"--layers is {layers!r}; give average, sum, top or a layer number from 0 to 2\n"
            in result.err
        )


@pytest.mark.parametrize("columns", [50, 51, 52, 100, 101])
def test_the_table_aligns_chinese_and_loses_none_of_it(
    tmp_path, elmore_command, monkeypatch, columns
):
    path = tmp_path / "text.txt"
    before = ["其中", "包括", "鼓励", "直接", "投资", "，", "农场", "、", "国家"]
    after = ["体制", "和", "商业", "活动", "及", "倒闭", "的", "规定"]
    sentence = " ".join([*before, "银行", *after])
    path.write_text(f"{sentence}\n", encoding="utf-8")
    monkeypatch.setenv("COLUMNS", str(columns))
    result = elmore_command("neighbors", "银行", path, "--tokenized", "--in", sentence)
    lines = result.out.splitlines()
    assert len(set(map(cell_len, lines))) == 1
    cells = [line.split("│")[2] for line in lines if line.startswith("│")]
    assert " ".join(cells).split() == [*before, "[银行]", *after]
