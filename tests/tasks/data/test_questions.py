import gzip
import json
from collections import Counter
from dataclasses import replace

import pytest

from elmore.errors import DataError
from elmore.tasks.data.answer_spans import Fit
from elmore.tasks.data.questions import Answer, count_fits, read_paragraphs
from tests.tasks.data.places import find_data

TEXT = "Mr. Bell rang in 1973.  He didn't pay 7 dollars."
QUESTION = {
    "id": "q1",
    "question": " What didn't he pay?",
    "answers": [
        {"text": "7 dollars", "answer_start": 38},
        {"text": "7", "answer_start": 19},
        {"text": "dollar", "answer_start": 40},
        {"text": "8 dollars", "answer_start": 38},
    ],
}
PARAGRAPH = {"context": TEXT, "qas": [QUESTION]}


def write(folder, *paragraphs, name="squad.json"):
    article = {"title": "Bell", "paragraphs": list(paragraphs)}
    path = folder / name
    path.write_text(json.dumps({"version": "1.1", "data": [article]}))
    return path


def test_answers_are_spans_of_the_paragraphs_tokens(tmp_path):
    path = tmp_path / "squad.json.gz"
    path.write_bytes(gzip.compress(write(tmp_path, PARAGRAPH).read_bytes()))
    (paragraph,) = read_paragraphs(path)
    assert (paragraph.title, paragraph.text) == ("Bell", TEXT)
    assert paragraph.sentences == (
        ("Mr.", "Bell", "rang", "in", "1973", "."),
        ("He", "did", "n't", "pay", "7", "dollars", "."),
    )
    assert [TEXT[start:end] for start, end in paragraph.offsets] == list(paragraph.tokens)
    (question,) = paragraph.questions
    assert (question.name, question.tokens) == ("q1", ("What", "did", "n't", "he", "pay", "?"))
    assert question.answers == (
        Answer(text="7 dollars", span=(10, 12), fit=Fit.GIVEN),
        Answer(text="7", span=(10, 11), fit=Fit.MOVED),
        Answer(text="dollar", span=(11, 12), fit=Fit.WIDENED),
        Answer(text="8 dollars", span=None, fit=Fit.MISSING),
    )
    assert paragraph.quote(4, 9) == "1973.  He didn't"
    assert count_fits([paragraph]) == Counter(Fit)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            {"answers": []},
            "question q1: expected at least one answer, got none; leave the question",
        ),
        ({"question": " "}, "question q1: the question has no words"),
        ({"question": 7}, "question q1: expected a string under 'question', got '7'"),
        ({"answers": None}, "expected a list under 'answers'"),
        ({"answers": ["7"]}, "expected a string under 'text'"),
        ({"answers": [{"text": "7"}]}, "expected an integer under 'answer_start', got 'nothing'"),
        ({"answers": [{"text": "7", "answer_start": True}]}, "expected an integer"),
        ({"answers": [{"text": " ", "answer_start": 3}]}, "an answer is blank"),
        ({"id": None}, "expected a string under 'id'"),
    ],
)
def test_questions_that_are_invalid_are_reported(tmp_path, change, complaint):
    path = write(tmp_path, PARAGRAPH, {**PARAGRAPH, "qas": [{**QUESTION, **change}]})
    paragraphs = read_paragraphs(path)
    assert next(paragraphs).text == TEXT
    with pytest.raises(DataError, match=rf"article 1 \('Bell'\), paragraph 2.*{complaint}"):
        next(paragraphs)


@pytest.mark.parametrize("answers", [{}, {"answers": []}, {"answers": 7}, {"answers": ["7"]}])
def test_answers_that_are_not_needed_are_not_looked_at(tmp_path, answers):
    (wanted,) = read_paragraphs(write(tmp_path, PARAGRAPH))
    bare = {"id": "q1", "question": QUESTION["question"], **answers}
    path = write(tmp_path, {**PARAGRAPH, "qas": [bare]})
    (paragraph,) = read_paragraphs(path, needs_answers=False)
    assert paragraph == replace(
        wanted, questions=tuple(replace(each, answers=()) for each in wanted.questions)
    )
    with pytest.raises(DataError, match="question q1: expected a"):
        list(read_paragraphs(path))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"context": " "}, "paragraph 1: the context has no words"),
        ({"context": 7}, "paragraph 1: expected a string under 'context', got '7'"),
        ({"qas": [{"id": "q1"}]}, "question q1: expected a string under 'question', got 'nothing'"),
        ({"qas": [{"id": "q1", "question": " "}]}, "question q1: the question has no words"),
        ({"qas": [QUESTION, {"question": "Who?"}]}, "paragraph 1: expected a string under 'id'"),
        ({"qas": ["Who?"]}, "expected a string under 'id', got 'Who.'"),
        ({"qas": None}, "expected a list under 'qas'"),
    ],
)
def test_without_answers_too_there_must_be_questions(tmp_path, change, complaint):
    path = write(tmp_path, {**PARAGRAPH, **change})
    with pytest.raises(DataError, match=rf"squad.json, article 1 .*{complaint}"):
        list(read_paragraphs(path, needs_answers=False))


def test_an_article_needs_no_title(tmp_path):
    path = tmp_path / "squad.json"
    path.write_text(json.dumps({"data": [{"paragraphs": [PARAGRAPH, {}]}]}))
    paragraphs = read_paragraphs(path)
    assert next(paragraphs).title == ""
    with pytest.raises(
        DataError, match="article 1, paragraph 2: expected a string under 'context'"
    ):
        next(paragraphs)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"data": []}', "has no questions"),
        ('{"data": [{"title": "a", "paragraphs": []}]}', "has no questions"),
        ('{"data": [7]}', "article 1: expected a list under 'paragraphs', got '7'"),
        ('{"data": [{"title": "a", "paragraphs": [{"context": " ", "qas": []}]}]}', "no words"),
        ('{"data": [{"title": "a", "paragraphs": [{"context": "b"}]}]}', "a list under 'qas'"),
        ("7", "is not the expected JSON"),
    ],
)
def test_files_of_another_form_are_reported(tmp_path, text, complaint):
    path = tmp_path / "squad.json"
    path.write_text(text)
    with pytest.raises(DataError, match=complaint):
        list(read_paragraphs(path))


def test_squad_has_its_questions_and_their_answers_are_found():
    paragraphs = list(read_paragraphs(find_data("squad/dev-v1.1-rebuilt.json.gz")))
    assert sum(len(paragraph.questions) for paragraph in paragraphs) == 10_570
    for paragraph in paragraphs:
        for question in paragraph.questions:
            for answer in question.answers:
                quote = paragraph.quote(*answer.span)
                assert answer.text in quote
                assert (answer.text == quote) == (answer.fit is not Fit.WIDENED)
    fits = count_fits(paragraphs)
    assert fits[Fit.GIVEN] > 0.98 * fits.total()
