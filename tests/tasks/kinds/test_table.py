from collections import Counter

import pytest

from elmore.errors import ConfigError
from elmore.tasks.data.columns import TaggedSentence
from elmore.tasks.fit.model import make_task
from elmore.tasks.fit.settings import TASK_CONFIGS, load_settings
from elmore.tasks.kinds.classes import ClassExample
from elmore.tasks.kinds.names import OTHER_NAMES
from elmore.tasks.kinds.table import KINDS, find_kind


def test_every_name_means_one_task():
    names = Counter(name for kind in KINDS.values() for name in (kind.name, *kind.also))
    assert set(names.values()) == {1}
    for name in names:
        kind = find_kind(name)
        assert name in (kind.name, *kind.also)


@pytest.mark.parametrize("name", KINDS)
def test_every_task_has_its_settings_and_what_a_task_needs(name):
    settings = load_settings(name)
    assert settings.kind == name
    task = make_task(settings)
    assert task.name == name
    assert task.main_score
    for method in ("read", "read_unlabeled", "count_tokens", "find_sentences", "find_labels"):
        assert callable(getattr(task, method))
    for method in ("build", "prepare", "score", "to_json"):
        assert callable(getattr(task, method))


def test_the_names_in_the_help_are_those_of_the_table():
    assert list(OTHER_NAMES) == list(KINDS)


def test_every_file_of_settings_is_of_a_task():
    assert {path.stem for path in TASK_CONFIGS.glob("*.toml")} == set(KINDS)


def test_an_unknown_task_is_reported_with_the_known_ones():
    assert find_kind("NER").name == "entities"
    known = r"unknown task 'parsing'; choose one of: entities \(ner\), tags \(pos, chunks\)"
    with pytest.raises(ConfigError, match=known):
        find_kind("parsing")


def test_a_constant_prediction_scores_what_its_best_label_does():
    texts = [ClassExample(texts=("a",), sentences=(("a",),), label=label) for label in "xyyy"]
    tagged = [TaggedSentence(tokens=["a", "b", "c"], tags=["X", "O", "O"])]
    for kind in KINDS.values():
        task = kind.task(kind.settings())
        if task.main_score == "accuracy":
            examples = tagged if kind.name == "tags" else texts
            wanted = pytest.approx(200 / 3) if kind.name == "tags" else 75.0
            assert task.score_constant(examples) == wanted
        else:
            assert task.score_constant([]) == 0.0
