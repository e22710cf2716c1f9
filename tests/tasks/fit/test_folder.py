"""A saved task loads to the same predictions, or says in a sentence why it does not."""

import json
import shutil

import pytest

from elmore.errors import ConfigError, ElmoreError, ModelError
from elmore.pretrain.stopping import StoppedError
from elmore.tasks.fit.folder import load_task_model
from tests import tiny
from tests.tasks.fit.made_up import Place, Watcher

SHORT = "training.max_epochs=1"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = Place(tmp_path_factory.mktemp("folders"))
    made.fit("plain", SHORT)
    made.fit("elmo", SHORT, "elmo.where=both")
    return made


@pytest.fixture
def copy(place, tmp_path):
    """A folder to be damaged."""
    return shutil.copytree(place.folder / "plain", tmp_path / "copy")


@pytest.mark.parametrize("run", ["plain", "elmo"])
def test_loaded_twice_it_predicts_the_same(place, run):
    one, other = (load_task_model(place.folder / run) for _ in range(2))
    examples = list(one.task.read_unlabelled(place.data / "test.txt"))
    assert list(one.predict(examples)) == list(other.predict(examples))
    assert not one.network.training


def test_a_bilm_that_has_moved_can_be_named(place, tmp_path):
    moved = shutil.copytree(place.model, tmp_path / "moved")
    hidden = place.model.rename(place.folder / "hidden")
    try:
        with pytest.raises(ModelError, match=r"the biLM of .*elmo is missing: .*--elmo"):
            load_task_model(place.folder / "elmo")
        assert load_task_model(place.folder / "elmo", elmo=str(moved)).mixes
    finally:
        hidden.rename(place.model)


def test_another_bilm_is_refused(place, tmp_path):
    tiny.model(seed=5).save_pretrained(tmp_path / "other")
    with pytest.raises(ModelError, match=r"is not the one that .*elmo was fitted with"):
        load_task_model(place.folder / "elmo", elmo=str(tmp_path / "other"))


def test_no_task_is_told(place, tmp_path):
    with pytest.raises(ModelError, match=r"has no trained task .*; fit one with elmore fit"):
        load_task_model(tmp_path)
    with pytest.raises(ModelError, match="has no trained task"):
        load_task_model(tmp_path / "none")
    with pytest.raises(StoppedError):
        place.fit("begun", SHORT, observer=Watcher(stop_after=2))
    with pytest.raises(ModelError, match=r"its training has not ended.*run the same elmore fit"):
        load_task_model(place.folder / "begun")


@pytest.mark.parametrize("name", ["words.txt", "weights.safetensors"])
def test_a_missing_or_damaged_file_is_told(copy, name):
    content = (copy / name).read_bytes()
    for damage in (None, b"", content[: len(content) // 2], content + b"\xff\n"):
        (copy / name).unlink()
        if damage is not None:
            (copy / name).write_bytes(damage)
        with pytest.raises(ModelError, match="fit it again") as caught:
            load_task_model(copy)
        assert "\n" not in str(caught.value)
        (copy / name).write_bytes(content)
    load_task_model(copy)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 99},
        {"labels": None},
        {"labels": ["A"]},
        {"num_trained_words": "many"},
        {"words_dim": -1},
        {"words_dim": None},
        {"settings": {}},
        {"settings": {"kind": "unheard"}},
        {"elmo": 3, "where": "input"},
    ],
)
def test_settings_that_are_not_of_a_task_are_told(copy, change):
    path = copy / "settings.json"
    content = json.loads(path.read_text())
    if where := change.pop("where", None):
        content["settings"]["elmo"]["where"] = where
    path.write_text(json.dumps({**content, **change}))
    with pytest.raises(ElmoreError) as caught:
        load_task_model(copy)
    assert "\n" not in str(caught.value)
    path.write_text("[")
    with pytest.raises(ModelError, match=r"settings.json is not JSON"):
        load_task_model(copy)


def test_a_device_that_is_not_there_is_told(place):
    with pytest.raises(ConfigError, match="cannot compute on device 'abacus'"):
        load_task_model(place.folder / "plain", device="abacus")
