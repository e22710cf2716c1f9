"""What a Python caller may give to predict: plain text where it makes sense, else one sentence."""

import pytest

from elmore.errors import DataError
from elmore.tasks.data.columns import TaggedSentence
from elmore.tasks.fit.model import TaskModel, find_words, make_task
from elmore.tasks.fit.settings import load_settings
from elmore.tasks.kinds.table import KINDS

CATS, MICE = ["Cats", "chase", "mice", "."], ["Mice", "run", "."]

# What each kind takes, and the sentences that it is read as.
TAKEN = {
    "entities": [("Cats chase mice.", [CATS]), (CATS, [CATS]), (tuple(CATS), [CATS])],
    "tags": [("Cats chase mice.", [CATS]), (CATS, [CATS])],
    "sentiment": [("Cats chase mice.", [CATS])],
    "texts": [("Cats chase mice.", [CATS])],
    "entailment": [(("Cats chase mice.", "Mice run."), [CATS, MICE])],
    "pairs": [(["Cats chase mice.", "Mice run."], [CATS, MICE])],
    "roles": [((CATS, 1), [CATS]), (("Cats chase mice.", 1), [CATS])],
    "coreference": [("Cats chase mice. Mice run.", [CATS, MICE]), ([CATS, MICE], [CATS, MICE])],
    "questions": [({"question": "Mice run.", "context": "Cats chase mice."}, [CATS, MICE])],
}
LABELS = {
    "entities": ("iob2", "PER"),
    "roles": ("O", "B-V", "B-ARG0", "I-ARG0"),
    "coreference": (),
    "questions": (),
}
SMALL = ("elmo.where=none", "words.dim=4", "task.hidden_dim=4")


@pytest.fixture(params=list(KINDS))
def model(request):
    """An untrained network of each kind."""
    settings = load_settings(request.param, changes=SMALL)
    return TaskModel(
        settings,
        labels=LABELS.get(request.param, ("A", "B")),
        words=find_words(settings, [CATS, MICE] * 2),
        layers=None,
    )


def test_plain_text_is_read_and_predicted_on(model):
    for given, sentences in TAKEN[model.task.name]:
        ((example, prediction),) = model.predict([given])
        roles = model.task.find_sentences([example])
        assert [list(tokens) for role in roles for tokens in role] == sentences
        assert isinstance(model.task.to_json(example, prediction), dict)


def test_examples_are_taken_as_they_are(model):
    given, _ = TAKEN[model.task.name][0]
    example = model.task.parse(given)
    assert model.task.parse(example) is example


def test_no_examples_give_no_predictions(model):
    assert list(model.predict([])) == []
    assert list(model.predict(iter(()))) == []


@pytest.mark.parametrize("given", ["", "  ", b"Cats", None, 5, [], [[]], [""], ["a", 5], {}])
def test_what_no_task_can_read_is_refused_with_what_is_wanted(model, given):
    with pytest.raises(DataError, match=f"an example of {model.task.name} must be a") as refused:
        list(model.predict([given]))
    message = str(refused.value)
    assert message.count("\n") == 0
    assert message.endswith("for a file, give model.read(path)")


def refuse(kind, given):
    with pytest.raises(DataError) as refused:
        make_task(load_settings(kind, changes=SMALL)).parse(given)
    return str(refused.value)


@pytest.mark.parametrize(
    ("kind", "given", "wanted"),
    [
        ("tags", [CATS], "a sentence: a string that is not blank, or a list of tokens"),
        ("texts", CATS, "a text: a string"),
        ("texts", ("one", "two"), "a text: a string"),
        ("entailment", "Cats chase mice.", "a pair of texts, such as ("),
        ("pairs", ("one", "two", "three"), "a pair of texts, such as ("),
        ("roles", "Cats chase mice.", "a sentence and the index of its predicate"),
        ("roles", (CATS, 4), "a sentence and the index of its predicate"),
        ("roles", (CATS, "chase"), "a sentence and the index of its predicate"),
        (
            "coreference",
            CATS,
            "a document: a string that is not blank, or a list of tokenized sentences",
        ),
        ("questions", "Do mice run?", "a dict with two texts, {'question': ..., 'context': ...}"),
        ("questions", {"question": "Do mice run?"}, "a dict with two texts"),
        ("tags", TaggedSentence, "a sentence"),
    ],
)
def test_text_of_another_shape_is_refused_with_what_is_wanted(kind, given, wanted):
    assert f"must be {wanted}" in refuse(kind, given)


def test_an_example_of_another_task_is_refused():
    tagged = make_task(load_settings("tags", changes=SMALL)).parse(CATS)
    assert "must be a text" in refuse("texts", tagged)
    pair = make_task(load_settings("pairs", changes=SMALL)).parse(("one", "two"))
    assert "must be a text" in refuse("texts", pair)


def test_what_is_not_a_list_is_refused_at_once(model):
    for given, reported in (
        ("Cats chase mice.", "got one string ('Cats chase mice.'); put it into a list"),
        (b"Cats", "got one bytes"),
        ({"question": "Do mice run?", "context": "Mice run."}, "got one dict"),
        (None, "got None; give a list"),
        (5, "got int; give a list"),
    ):
        with pytest.raises(DataError) as refused:
            model.predict(given)
        assert f"predict takes a list of examples, {reported}" in str(refused.value)


def test_plain_text_cannot_be_scored(model):
    given, _ = TAKEN[model.task.name][0]
    with pytest.raises(DataError, match="plain text has no labels to score against"):
        model.score([given])


def test_a_language_is_that_of_the_settings():
    task = make_task(load_settings("tags", changes=[*SMALL, "task.language=zh"]))
    assert task.parse("我爱北京。").tokens == ["我", "爱", "北京", "。"]
