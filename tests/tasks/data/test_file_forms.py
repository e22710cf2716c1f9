"""A file of another task's format is called what it is; a file of the task's own never is."""

import json

import pytest

from elmore.errors import DataError
from elmore.tasks.data.file_forms import FileForm, guess_form
from elmore.tasks.fit.model import make_task
from elmore.tasks.fit.settings import load_settings
from tests.tasks.data.places import find_data

FRAME = {"words": ["Cats", "sleep"], "frames": [{"pred": 1, "tags": ["B-ARG0", "B-V"]}]}
QUESTION = {"id": "1", "question": "Who?", "answers": [{"text": "Cats", "answer_start": 0}]}
SQUAD = {"data": [{"paragraphs": [{"context": "Cats sleep.", "qas": [QUESTION]}]}]}
WORD = "\t".join(["1", "Cats", "cat", "NOUN", "NNS", "_", "0", "root", "_", "_"])
ROW = "doc 0 0 Cats NNS * - - - - * (V*) -"

FILES = {
    FileForm.JSON_LINES: f"{json.dumps(FRAME)}\n" * 2,
    FileForm.JSON: json.dumps(SQUAD),
    FileForm.TREES: "(3 (2 Very) (4 good))\n(1 Bad)\n",
    FileForm.CONLLU: f"# text = Cats\n{WORD}\n\n{WORD}\n",
    FileForm.CONLL2012: f"#begin document (doc); part 0\n{ROW}\n\n#end document\n",
    FileForm.COLUMNS: "-DOCSTART- O\n\nCats B-ANI\nsleep O\n\nBen B-PER\n",
    FileForm.TABLE: "Cats sleep\tgood\nDogs bark\tbad\nMice run\tgood\n",
    FileForm.CSV: "text,label\nCats sleep,good\nDogs bark,bad\n",
}
# What each kind of task is trained on.
READ = {
    "entities": {FileForm.COLUMNS},
    "tags": {FileForm.COLUMNS, FileForm.CONLLU},
    "sentiment": {FileForm.TREES},
    "texts": {FileForm.TABLE},
    "pairs": {FileForm.TABLE},
    "roles": {FileForm.JSON_LINES, FileForm.CONLL2012},
    "coreference": {FileForm.CONLL2012, FileForm.CONLLU},
    "questions": {FileForm.JSON},
}
TEXTS = [
    "It rained. Nobody came.\n",
    "{\n\n",
    "{x} is a set, and [y] a list.\n",
    "[1] Cats sleep.\n[2] Dogs bark.\n",
    '["Yes"] she said.\n',
]
# Which lines of a text may look like.
SHORT_LINES = "I like cats\n\nShe likes dogs\n\nWe like mice\n"


def write(folder, text, name="train.txt"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def make(kind):
    return make_task(load_settings(kind))


@pytest.mark.parametrize("form", FILES)
def test_a_format_is_recognized_by_its_first_lines(tmp_path, form):
    assert guess_form(write(tmp_path, FILES[form])) is form


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (json.dumps(SQUAD, indent=1), FileForm.JSON),
        (json.dumps({"version": "1.1", **SQUAD}), FileForm.JSON),
        (json.dumps([FRAME]), FileForm.JSON),
        (json.dumps(FRAME), FileForm.JSON_LINES),
        ("EU NNP B-ORG\nrejects VBZ O\nGerman JJ B-MISC\n", FileForm.COLUMNS),
        ("# comment\n1\tCats\t(0)\n2\tsleep\t_\n3\t.\t_\n\n1\tNo\t_\n", None),  # OntoGUM's
    ],
)
def test_forms_may_vary(tmp_path, text, form):
    assert guess_form(write(tmp_path, text)) is form


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("form", FILES)
def test_training_data_of_another_format_is_refused_by_name(tmp_path, kind, form):
    path = write(tmp_path, FILES[form])
    if form in READ[kind]:
        return
    with pytest.raises(DataError) as refused:
        list(make(kind).read_training(path))
    assert str(refused.value).startswith(f"{path} looks like {form}, but {kind} reads ")
    assert "\n" not in str(refused.value)


def test_the_task_that_reads_such_a_file_is_named(tmp_path):
    for form, reader in (
        (FileForm.JSON_LINES, "(roles)"),
        (FileForm.JSON, "(questions)"),
        (FileForm.TABLE, "(texts, pairs or entailment)"),
        (FileForm.CSV, "give such a file"),
    ):
        with pytest.raises(DataError) as refused:
            list(make("entities").read(write(tmp_path, FILES[form])))
        assert str(refused.value).endswith(reader)


def test_a_mistake_in_a_file_of_the_right_format_is_reported_with_its_line(tmp_path):
    path = write(tmp_path, "Cats B-ANI\nsleep O\n\nBen PER\n")
    with pytest.raises(DataError, match=r"line 4: expected a span tag .* got 'PER'"):
        list(make("entities").read(path))
    path = write(tmp_path, '{"words": ["Cats"]\n' + json.dumps(FRAME), name="train.jsonl")
    with pytest.raises(DataError, match=r"line 1: .* it is not JSON"):
        list(make("roles").read(path))
    path = write(tmp_path, "Cats sleep\tgood\nDogs bark\tbad\nMice run\n")
    with pytest.raises(DataError, match="line 3: expected 2 columns"):
        list(make("texts").read(path))


@pytest.mark.parametrize("kind", ["entities", "tags", "sentiment", "texts", "coreference"])
def test_to_predict_on_text_is_text_and_other_formats_are_refused(tmp_path, kind):
    for text in [*TEXTS, SHORT_LINES]:
        assert list(make(kind).read_unlabeled(write(tmp_path, text)))
    for form in (FileForm.JSON_LINES, FileForm.JSON):
        with pytest.raises(DataError, match=f"looks like {form}"):
            list(make(kind).read_unlabeled(write(tmp_path, FILES[form])))


@pytest.mark.parametrize("text", ["", *TEXTS])
def test_text_has_no_format(tmp_path, text):
    assert guess_form(write(tmp_path, text)) is None


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("conll2003/eng.train", FileForm.COLUMNS),
        ("sst/train.txt", FileForm.TREES),
        ("snli/train_18k.tsv", FileForm.TABLE),
        ("srl_ewt/train.jsonl", FileForm.JSON_LINES),
        ("ud_ewt/en_ewt-ud-train.conllu", FileForm.CONLLU),
        ("coref_litbank/conll/105_persuasion_brat.conll", FileForm.CONLL2012),
        ("squad/dev-v1.1-rebuilt.json.gz", FileForm.JSON),
    ],
)
def test_real_data_is_recognized(name, form):
    assert guess_form(find_data(name)) is form
