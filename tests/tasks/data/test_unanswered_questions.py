import json

import pytest

from elmore.errors import DataError
from elmore.tasks.data.questions import read_paragraphs
from elmore.tasks.data.unanswered_questions import read_unanswered

TEXT = "Mr. Bell rang in 1973.  He didn't pay."
QUESTION = {"id": "q1", "question": " Who rang?"}
ANSWER = {"text": "Bell", "answer_start": 4}


def write(folder, *, context=TEXT, questions=(QUESTION,)):
    article = {"paragraphs": [{"context": context, "qas": list(questions)}]}
    path = folder / "squad.json"
    path.write_text(json.dumps({"data": [{"title": "Bell", **article}]}))
    return path


@pytest.mark.parametrize("more", [{}, {"answers": []}, {"answers": 7}, {"answers": [ANSWER]}])
def test_answers_are_not_looked_at(tmp_path, more):
    (paragraph,) = read_unanswered(write(tmp_path, questions=[{**QUESTION, **more}]))
    (question,) = paragraph.questions
    assert (question.name, question.text, question.answers) == ("q1", " Who rang?", ())


def test_texts_are_read_as_with_answers(tmp_path):
    path = write(tmp_path, questions=[{**QUESTION, "answers": [ANSWER]}])
    (with_answers,), (without,) = read_paragraphs(path), read_unanswered(path)
    assert (without.text, without.sentences, without.offsets) == (
        with_answers.text,
        with_answers.sentences,
        with_answers.offsets,
    )
    assert without.questions[0].tokens == with_answers.questions[0].tokens


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"context": " "}, "paragraph 1: wanted a text that is not blank under 'context', got ' '"),
        ({"context": 7}, "under 'context', got '7'"),
        ({"questions": [{"id": "q1"}]}, "question 1: .* under 'question', got 'nothing'"),
        ({"questions": [QUESTION, {"question": "Who?"}]}, "question 2: .* under 'id'"),
        ({"questions": ["Who?"]}, "under 'question', got 'Who.'"),
    ],
)
def test_what_cannot_be_asked_is_told(tmp_path, change, complaint):
    with pytest.raises(DataError, match=rf"squad.json, article 1, .*{complaint}"):
        list(read_unanswered(write(tmp_path, **change)))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"data": []}', "has no paragraphs"),
        ('{"data": [7]}', "article 1: wanted a list under 'paragraphs', got '7'"),
        ('{"data": [{"paragraphs": [{"context": "b"}]}]}', "wanted a list under 'qas'"),
    ],
)
def test_files_of_another_form_are_told(tmp_path, text, complaint):
    path = tmp_path / "squad.json"
    path.write_text(text)
    with pytest.raises(DataError, match=complaint):
        list(read_unanswered(path))
