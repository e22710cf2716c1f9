import pytest

from elmore.errors import DataError
from elmore.tasks.kinds.classes import (
    MAX_LABELS,
    ClassExample,
    TextSettings,
    show,
    split_texts,
)
from elmore.tasks.kinds.texts import TextTask
from elmore.tasks.networks.label_choice import NO_NUMBER

TASK = TextTask(TextSettings())
PAIRS = [
    split_texts("He isn't here.", "Gone!", label="yes"),
    split_texts("A", "B C", label="no"),
    split_texts("A", "B", label=None),
]


def make(*labels):
    return [ClassExample(texts=("a",), sentences=(("a",),), label=label) for label in labels]


def test_texts_are_kept_as_written_and_in_tokens():
    assert PAIRS[0].texts == ("He isn't here.", "Gone!")
    assert PAIRS[0].sentences == (("He", "is", "n't", "here", "."), ("Gone", "!"))
    assert [TASK.count_tokens(pair) for pair in PAIRS] == [7, 3, 2]
    cut = split_texts("He isn't here.", "Gone!", label="yes", max_tokens=3)
    assert cut.texts == PAIRS[0].texts
    assert cut.sentences == (("He", "is", "n't"), ("Gone", "!"))


def test_roles_have_a_sentence_of_each_example():
    first, second = TASK.find_sentences(PAIRS)
    assert first == [("He", "is", "n't", "here", "."), ("A",), ("A",)]
    assert second == [("Gone", "!"), ("B", "C"), ("B",)]
    assert TASK.find_sentences(make("x", "y")) == ([("a",), ("a",)],)


def test_labels_are_in_one_order_and_there_are_some():
    assert TASK.find_labels(make("b", "a", None, "b", "C")) == ("C", "a", "b")
    with pytest.raises(DataError, match="all training examples have the label 'a'; give"):
        TASK.find_labels(make("a", "a", None))
    with pytest.raises(DataError, match=f"have {MAX_LABELS + 1} different labels, such as 'x0'"):
        TASK.find_labels(make(*(f"x{number}" for number in range(MAX_LABELS + 1))))


def test_a_label_that_training_did_not_have_has_no_number_and_is_wrong():
    examples = make("a", "new", "b")
    gold = TASK.prepare(examples, labels=("a", "b"), with_gold=True)
    assert gold.tolist() == [0, NO_NUMBER, 1]
    assert TASK.prepare(examples, labels=("a", "b"), with_gold=False) is None
    predictions = [{"a": 0.9, "b": 0.1}] * 2 + [{"a": 0.3, "b": 0.7}]
    assert TASK.score(examples, predictions) == {"accuracy": pytest.approx(200 / 3)}


def test_a_prediction_shows_its_label_and_all_probabilities():
    assert show({"a": 0.25, "b": 0.75}) == {
        "label": "b",
        "probabilities": {"a": 0.25, "b": 0.75},
    }
