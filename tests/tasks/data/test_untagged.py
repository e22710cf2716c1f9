import pytest

from elmore.errors import DataError
from elmore.tasks.data.untagged import UntaggedForm, read_untagged
from elmore.text.language import Language

COLUMNS = "EU x\nsaid ?\n\nno -\n"
TEXT = "The EU agreed today. It's late.\n\nBye now.\n"
WORD = "{}\t{}\t_\t_\t_\t_\t_\t_\t_\t_\n"


def read(folder, text, *, name="text", form="auto", **options):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    examples = list(read_untagged(path, form=UntaggedForm(form), **options))
    assert all(example.tags == [] for example in examples)
    return [example.tokens for example in examples]


def test_columns_are_known_by_lines_that_have_equally_many(tmp_path):
    assert read(tmp_path, COLUMNS.replace(" ", "\t")) == [["EU", "said"], ["no"]]
    assert read(tmp_path, "EU B-ORG\nsaid O\n\nno O\n") == [["EU", "said"], ["no"]]
    assert read(tmp_path, "-DOCSTART- -X-\n\nEU\tx y\nis\tx\nso\tx\n") == [["EU", "is", "so"]]
    # After the lines that decide the format, errors are reported.
    with pytest.raises(DataError, match="line 21: expected 2 columns"):
        read(tmp_path, "EU x\n" * 20 + "EU x y\n")
    assert read(tmp_path, "EU x\n" * 19 + "EU x y\n")[-1] == ["EU", "x", "y"]


def test_lines_of_as_many_words_are_text_anyway(tmp_path):
    letter = "John lives in Paris .\nMary works for Siemens .\nPeter went to Rome .\n" * 2
    assert [len(sentence) for sentence in read(tmp_path, letter)] == [5] * 6


def test_other_files_are_text(tmp_path):
    assert read(tmp_path, TEXT) == [
        ["The", "EU", "agreed", "today", "."],
        ["It", "'s", "late", "."],
        ["Bye", "now", "."],
    ]
    assert read(tmp_path, "Two words\nand two\n") == [["Two", "words"], ["and", "two"]]
    assert read(tmp_path, "One\nword\neach\n") == [["One"], ["word"], ["each"]]


def test_conllu_is_known_by_its_name_and_needs_no_tags(tmp_path):
    text = WORD.format(1, "EU") + WORD.format("1.1", "hidden") + WORD.format(2, "said")
    for name in ("a.conllu", "a.CoNLLU"):
        for form in ("auto", "columns"):
            assert read(tmp_path, text, name=name, form=form) == [["EU", "said"]]


def test_a_form_that_is_named_is_not_guessed(tmp_path):
    assert read(tmp_path, COLUMNS, form="tokenized")[0] == ["EU", "x"]
    assert read(tmp_path, COLUMNS, form="raw")[1] == ["said", "?"]
    assert read(tmp_path, "EU x\n", form="columns") == [["EU"]]
    with pytest.raises(DataError, match="text, line 2: expected 6 columns"):
        read(tmp_path, "a b c d e f\na b\n", form="columns")


def test_positions_in_words_are_dropped_if_there_are_some(tmp_path):
    text = "科0 O\n技1 O\n部2 O\n"
    assert read(tmp_path, text, is_numbered=True) == [["科", "技", "部"]]
    assert read(tmp_path, text) == [["科0", "技1", "部2"]]


def test_language_says_how_text_is_split(tmp_path):
    pytest.importorskip("rjieba", reason="needs elmore[chinese]")
    assert len(read(tmp_path, "他来。她走。")) == 1
    assert len(read(tmp_path, "他来。她走。", language=Language.ZH)) == 2


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_file_without_sentences_is_refused(tmp_path, text):
    with pytest.raises(DataError, match="text has no sentences; give text or columns"):
        read(tmp_path, text)
