import json
import math

import pytest
import torch

from elmore.errors import ConfigError, DataError, DataWarning
from elmore.tasks.inputs.token_batch import NUM_SPECIAL_ROWS, TokenBatcher
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.kinds.questions import (
    QuestionSettings,
    QuestionTask,
    cut_answer,
    cut_passages,
    find_alike,
    write_answers,
)
from elmore.tasks.metrics.answers import score_answers
from elmore.tasks.networks.answer_finder import NO_SPAN, FoundSpan
from elmore.tasks.task import TaskBatch
from tests.tasks.data.places import find_data

TEXT = "Mr. Bell rang in 1973.  He didn't pay 7 dollars. Bell paid 9."


def ask(name, question, *answers):
    found = [{"text": answer, "answer_start": max(0, TEXT.find(answer))} for answer in answers]
    return {"id": name, "question": question, "answers": found}


QUESTIONS = [
    ask("q1", "Who rang?", "Bell"),
    ask("q2", "What did he not pay?", "7 dollars", "dollars", "7 dollars"),
    ask("q3", "Who are you?", "Watson"),
]
OTHER = {"context": "Oil rose.", "qas": [ask("q4", "What rose?", "Oil")]}


def write(folder, questions=QUESTIONS, others=(OTHER,)):
    paragraphs = [{"context": TEXT, "qas": questions}, *others]
    path = folder / "squad.json"
    path.write_text(json.dumps({"data": [{"title": "Bell", "paragraphs": paragraphs}]}))
    return path


def read(folder, **settings):
    task = QuestionTask(QuestionSettings(**settings))
    return task, list(task.read(write(folder)))


def find(start, end, probability=0.25):
    return FoundSpan(start=start, end=end, log_probability=math.log(probability))


def test_examples_have_the_answers_and_where_the_passage_has_them(tmp_path):
    task, examples = read(tmp_path)
    first, second, third, other = examples
    assert first.tokens == ("Who", "rang", "?")
    assert (first.answers, first.spans) == (("Bell",), ((1, 2),))
    # Of answers given twice one span is kept; of one that the passage does not have, none.
    assert second.answers == ("7 dollars", "dollars", "7 dollars")
    assert second.spans == ((10, 12), (11, 12))
    assert (third.answers, third.spans) == (("Watson",), ())
    assert first.passage.tokens[10:12] == ("7", "dollars")
    assert task.count_tokens(first) == len(first.passage.tokens)
    assert task.find_sentences([first, other]) == (
        [first.passage.tokens, ("Oil", "rose", ".")],
        [("Who", "rang", "?"), ("What", "rose", "?")],
    )
    assert task.find_labels(examples) == ()


def test_examples_of_a_passage_share_it_and_all_share_their_tokens(tmp_path):
    task, (first, second, _, other) = read(tmp_path)
    assert first.passage is second.passage
    assert task.find_sentences([second])[0][0] is first.passage.tokens
    assert first.tokens[1] is first.passage.tokens[2]  # rang
    assert other.passage.tokens[2] is first.passage.tokens[5]  # the period


def test_only_training_cuts_passages_and_leaves_out_answers_cut_off(tmp_path):
    task, examples = read(tmp_path, max_passage_tokens=11)
    assert [len(example.passage.tokens) for example in examples] == [17, 17, 17, 3]
    kept = list(cut_passages(examples, max_tokens=11))
    assert [example.name for example in kept] == ["q1", "q4"]
    assert kept[0].passage.tokens == examples[0].passage.tokens[:11]
    assert kept[1] == examples[3]
    # One token more, and the second question has its answer again.
    task, examples = read(tmp_path, max_passage_tokens=12)
    first, second, other = cut_passages(examples, max_tokens=12)
    assert (second.name, second.spans) == ("q2", ((10, 12), (11, 12)))
    assert first.passage is second.passage
    assert other.passage is examples[3].passage
    assert cut_answer(second, find(10, 12)) == "7 dollars"
    assert len(list(task.read_training(write(tmp_path, QUESTIONS[:2])))) == 3
    task = QuestionTask(QuestionSettings(max_passage_tokens=1))
    with pytest.raises(DataError, match=r"first 1 tokens .* raise task\.max_passage_tokens"):
        list(task.read_training(write(tmp_path, QUESTIONS[1:2], others=[])))


def test_answers_that_are_not_where_the_file_says_are_reported(tmp_path):
    moved = ask("q5", "How much?", "7")
    moved["answers"][0]["answer_start"] = TEXT.index("73")
    path = write(tmp_path, [*QUESTIONS, moved])
    with pytest.warns(
        DataWarning,
        match=r"of 7 answers, 1 with a wrong answer_start .* and 1 not in their passage",
    ):
        examples = list(QuestionTask(QuestionSettings()).read_training(path))
    assert [example.name for example in examples] == ["q1", "q2", "q5", "q4"]


def test_questions_are_cut_always(tmp_path):
    task, examples = read(tmp_path, max_question_tokens=2)
    assert [example.tokens for example in examples][1] == ("What", "did")
    assert [each.tokens for each in task.read_unlabeled(write(tmp_path))][1] == ("What", "did")


def test_gold_is_first_and_last_tokens_and_hidden_if_not_wanted(tmp_path):
    task, examples = read(tmp_path)
    gold = task.prepare(examples, with_gold=True)
    none = [NO_SPAN, NO_SPAN]
    assert gold.tolist() == [
        [[1, 1], none],
        [[10, 11], [11, 11]],
        [none, none],
        [[0, 0], none],
    ]
    assert gold.dtype == torch.int64
    assert task.prepare(examples, with_gold=False) is None
    assert task.prepare(examples[2:3], with_gold=True).tolist() == [[none]]


def test_answers_may_count_wherever_they_are(tmp_path):
    task, examples = read(tmp_path, gold_places="anywhere")
    assert task.prepare(examples[:1], with_gold=True).tolist() == [[[1, 1], [13, 13]]]
    assert find_alike(("a", "a", "a"), (1, 3)) == [(0, 2), (1, 3)]
    # Not in what was cut off.
    (cut,) = cut_passages(examples[:1], max_tokens=13)
    assert task.prepare([cut], with_gold=True).tolist() == [[[1, 1]]]


def test_answers_are_the_text_between_their_tokens(tmp_path):
    task, (first, *_) = read(tmp_path)
    line = task.to_json(first, find(4, 9))
    assert line == {
        "id": "q1",
        "question": "Who rang?",
        "answer": "1973.  He didn't",
        "start": 17,
        "end": 33,
        "probability": pytest.approx(0.25),
    }
    assert TEXT[17:33] == line["answer"]
    json.dumps(line)


def test_scores_and_the_official_file_agree(tmp_path):
    task, examples = read(tmp_path)
    found = [find(0, 2), find(10, 12), find(0, 2), find(0, 1)]
    scores = task.score(examples, found)
    # "Mr. Bell" for "Bell" has an F1 of 2/3; q2 and q4 are right.
    assert scores["exact"] == pytest.approx(50)
    assert scores[task.main_score] == pytest.approx(100 * (2 / 3 + 1 + 0 + 1) / 4)
    path = tmp_path / "answers.json"
    write_answers(path, examples, found)
    answers = json.loads(path.read_text())
    assert answers == {"q1": "Mr. Bell", "q2": "7 dollars", "q3": "Mr. Bell", "q4": "Oil"}
    official = score_answers({example.name: example.answers for example in examples}, answers)
    assert scores == {"exact": official.exact_percent, "f1": official.f1_percent}
    with pytest.raises(DataError, match=r"cannot write .*; choose another path"):
        write_answers(tmp_path, examples, found)


def test_questions_without_answers_are_read_but_not_scored(tmp_path):
    task = QuestionTask(QuestionSettings())
    bare = [{key: question[key] for key in ("id", "question")} for question in QUESTIONS]
    labeled = list(task.read(write(tmp_path)))
    unlabeled = list(task.read_unlabeled(write(tmp_path, bare)))
    assert task.find_sentences(unlabeled) == task.find_sentences(labeled)
    assert {(example.answers, example.spans) for example in unlabeled} == {((), ())}
    assert task.to_json(unlabeled[0], find(1, 2))["answer"] == "Bell"
    assert task.prepare(unlabeled, with_gold=True).shape == (4, 1, 2)
    with pytest.raises(DataError, match="question 'q1' has no gold answer"):
        task.score(unlabeled[:1], [find(1, 2)])
    with pytest.raises(DataError, match="question q1: expected a list under 'answers'"):
        list(task.read(write(tmp_path, bare)))


@pytest.mark.slow
def test_a_network_learns_from_what_was_prepared(tmp_path):
    task, examples = read(tmp_path, hidden_dim=4, dropout=0.0)
    examples = list(cut_passages(examples, max_tokens=300))
    words = sorted({token for role in task.find_sentences(examples) for s in role for token in s})
    torch.manual_seed(0)
    tokens = TokenInput(words=torch.randn(NUM_SPECIAL_ROWS + len(words), 6))
    network = task.build(tokens, labels=task.find_labels(examples))
    batcher = TokenBatcher(words=words)
    batch = TaskBatch(
        sentences=tuple(batcher.make(role) for role in task.find_sentences(examples)),
        features=task.prepare(examples, labels=(), with_gold=True),
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
    for _ in range(40):
        optimizer.zero_grad()
        network.loss(batch).backward()
        optimizer.step()
    assert task.score(examples, network.eval().predict(batch)) == {"exact": 100.0, "f1": 100.0}


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"hidden_dim": 0}, "task.hidden_dim is 0; give a whole number from 1"),
        ({"dropout": 1.0}, "task.dropout is 1.0; give a number from 0 to 0.99"),
        ({"dropout": "much"}, "task.dropout is 'much'"),
        ({"max_answer_tokens": 0}, "task.max_answer_tokens is 0"),
        ({"max_passage_tokens": 2.5}, "task.max_passage_tokens is 2.5"),
        ({"max_question_tokens": True}, "task.max_question_tokens is True"),
        ({"gold_places": "here"}, "task.gold_places is 'here'; choose one of: given, anywhere"),
    ],
)
def test_settings_that_are_invalid_are_reported(settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        QuestionSettings(**settings)


def test_squad_could_be_answered_almost_whole():
    task = QuestionTask(QuestionSettings())
    examples = list(task.read(find_data("squad/dev-v1.1-rebuilt.json.gz")))
    assert len(examples) == 10_570
    assert len({id(example.passage) for example in examples}) == 2_067
    # Answers are whole tokens, so a part of a word, and what is too long, cannot be found.
    most = task.settings.max_answer_tokens
    found = [find(*min(example.spans, key=lambda span: span[1] - span[0])) for example in examples]
    assert sum(span.end - span.start <= most for span in found) > 0.99 * len(found)
    assert task.score(examples, found)["exact"] > 99
