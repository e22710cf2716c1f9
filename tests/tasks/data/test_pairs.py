import pytest

from elmore.errors import DataError
from elmore.tasks.data.pairs import (
    INFERENCE_LABELS,
    LabeledPair,
    LabeledText,
    read_pairs,
    read_texts,
)
from tests.tasks.data.places import find_data

PAIR = LabeledPair(premise="A man sleeps.", hypothesis="He rests.", label="entailment")


def write(folder, *rows):
    path = folder / "table.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "rows",
    [
        [("A man sleeps.", "He rests.", "entailment")],
        [
            ("gold_label", "sentence1", "sentence2"),
            ("entailment", "A man sleeps.", "He rests."),
        ],
        [
            ("pairID", "Hypothesis", "Premise", "Label", "label1"),
            ("7", " He rests. ", "A man sleeps.", "entailment", "neutral"),
        ],
    ],
)
def test_a_first_line_may_name_the_columns(tmp_path, rows):
    assert list(read_pairs(write(tmp_path, *rows), labels=INFERENCE_LABELS)) == [PAIR]


def test_texts_have_one_label_each(tmp_path):
    rows = [("label", "text"), ("good", "Well made."), ("bad", "label")]
    wanted = [
        LabeledText(text="Well made.", label="good"),
        LabeledText(text="label", label="bad"),
    ]
    assert list(read_texts(write(tmp_path, *rows))) == wanted
    plain = [(text, label) for label, text in rows[1:]]
    assert list(read_texts(write(tmp_path, *plain))) == wanted


def test_pairs_that_annotators_did_not_agree_on_are_left_out(tmp_path):
    row = ("A man sleeps.", "He rests.")
    path = write(tmp_path, (*row, "-"), (*row, "entailment"))
    assert list(read_pairs(path, labels=INFERENCE_LABELS)) == [PAIR]
    with pytest.raises(DataError, match="has no pairs"):
        list(read_pairs(write(tmp_path, (*row, "-"))))


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ('"A sign says ""stop"""', 'A sign says "stop"'),
        ('"""Stop"" it says."', '"Stop" it says.'),
        ('"Stop!"', '"Stop!"'),  # nothing a spreadsheet would have quoted
        ('"Stop" and "go"', '"Stop" and "go"'),
        ('"A ""b" c"', '"A ""b" c"'),
        ('A ""b"" c', 'A ""b"" c'),
        ('"', '"'),
    ],
)
def test_only_a_spreadsheets_quotes_are_undone(tmp_path, cell, text):
    assert [each.text for each in read_texts(write(tmp_path, (cell, "x")))] == [text]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (
            ("A man sleeps.", "entailment"),
            r"expected 3 columns .*premise, hypothesis, label.*got 2",
        ),
        (("A", "B", "neutral", "x"), "expected 3 columns .* got 4"),
        (("A", " ", "neutral"), "but one is empty"),
        (("A", "B", ""), "but one is empty"),
        (("A", "B", "maybe"), "the label 'maybe' is not one of entailment, neutral"),
        (("entailment", "A", "B"), "name them in a first line, such as premise, hypothesis, label"),
    ],
)
def test_rows_that_do_not_fit_are_reported_with_their_lines(tmp_path, row, complaint):
    path = write(tmp_path, ("A man sleeps.", "He rests.", "entailment"), (), row)
    pairs = read_pairs(path, labels=INFERENCE_LABELS)
    assert next(pairs) == PAIR
    with pytest.raises(DataError, match=rf"table\.tsv, line 3: .*{complaint}"):
        next(pairs)


@pytest.mark.parametrize("row", [("A", "neutral"), ("A", "B", "neutral", "x")])
def test_the_first_row_does_not_say_how_many_columns_there_are(tmp_path, row):
    with pytest.raises(DataError, match=rf"line 1: expected 3 columns .* got {len(row)}"):
        list(read_pairs(write(tmp_path, row)))


def test_names_that_are_not_known_and_files_without_rows(tmp_path):
    path = write(tmp_path, ("gold_label", "first", "second"), ("neutral", "A", "B"))
    with pytest.raises(DataError, match=r"line 1: this line names columns, .* premise / sentence1"):
        list(read_pairs(path))
    with pytest.raises(DataError, match="has no texts"):
        list(read_texts(write(tmp_path, ("label", "text"))))
    (tmp_path / "table.tsv").write_bytes(b"caf\xe9\tgood\n")
    with pytest.raises(DataError, match="line 1: byte 0xe9 is not UTF-8"):
        list(read_texts(tmp_path / "table.tsv"))


@pytest.mark.parametrize(
    ("name", "num_pairs"),
    [("train_18k", 18_000), ("dev", 9_842), ("test", 9_824), ("cad_revised_test", 1_600)],
)
def test_snli_has_its_pairs(name, num_pairs):
    pairs = list(read_pairs(find_data(f"snli/{name}.tsv"), labels=INFERENCE_LABELS))
    assert len(pairs) == num_pairs
    assert not any('""' in pair.premise + pair.hypothesis for pair in pairs)


def test_names_of_columns_that_are_not_known_are_not_examples(tmp_path):
    path = tmp_path / "table.tsv"
    labels = ["good", "bad"] * 10
    rows = "".join(f"a film\t{label}\n" for label in labels)
    path.write_text("review\tsentiment\n" + rows)
    with pytest.raises(DataError, match=r"line 1: 'review sentiment' looks like .* text, label"):
        list(read_texts(path))
    path.write_text("awful\tbad\n" + rows)
    assert len(list(read_texts(path))) == 21


def test_commas_for_tabs_are_seen(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a film,good\n")
    with pytest.raises(DataError, match="replace commas by tabs"):
        list(read_texts(path))
