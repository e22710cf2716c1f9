"""What was read, in two lines that a person compares with what they meant to give."""

from elmore.tasks.data.parts import find_parts
from elmore.tasks.fit.data import read_data
from elmore.tasks.fit.data_summary import summarize_data
from elmore.tasks.fit.model import make_task
from elmore.tasks.fit.settings import load_settings


def summarize(folder, kind, *, name="txt", **parts):
    folder.mkdir(exist_ok=True)
    for part, text in parts.items():
        (folder / f"{part}.{name}").write_text(text)
    task = make_task(load_settings(kind))
    return summarize_data(task, read_data(task, find_parts(folder))).describe()


def test_entities_are_counted_by_type_and_the_tag_scheme_is_shown(tmp_path):
    train = "Ann I-PER\nLee I-PER\nBen B-PER\nleft O\n\nRome I-LOC\n"
    assert summarize(tmp_path, "entities", train=train, dev="Rome I-LOC\n") == (
        "train: 2 examples, 5 tokens; dev: 1 example, 1 token\n"
        "2 training labels: PER 2, LOC 1; tag scheme: iob1"
    )


def test_texts_are_counted_by_label(tmp_path):
    train = "so good\tyes\nso bad\tno\nit is fine\tyes\n"
    parts = {"train": train, "dev": "bad\tno\n", "test": "good\tyes\n"}
    assert summarize(tmp_path, "texts", **parts) == (
        "train: 3 examples, 7 tokens; dev: 1 example, 1 token; test: 1 example, 1 token\n"
        "2 training labels: yes 2, no 1"
    )


def test_of_many_labels_the_most_frequent_are_shown_and_long_ones_are_cut(tmp_path):
    rows = [f"some text\tlabel{number}\n" * (30 - number) for number in range(20)]
    rows.append(f"some text\t{'x' * 50}\n" * 99)
    described = summarize(tmp_path, "texts", train="".join(rows), dev="a b\tlabel0\n")
    labels = described.splitlines()[1]
    assert labels.startswith(f"21 training labels: {'x' * 27}... 99, label0 30, label1 29")
    assert labels.endswith("label10 20, and 9 more")


def test_questions_have_no_labels(tmp_path):
    text = (
        '{"data": [{"paragraphs": [{"context": "Cats sleep.", "qas": [{"id": "1", "question": '
        '"Who?", "answers": [{"text": "Cats", "answer_start": 0}]}]}]}]}'
    )
    described = summarize(tmp_path, "questions", name="json", train=text, dev=text)
    assert described == "train: 1 example, 3 tokens; dev: 1 example, 3 tokens"
