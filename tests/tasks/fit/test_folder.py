"""A saved task loads to the same predictions, or says in a sentence why it does not."""

import json
import os
import resource
import shutil
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file, save_file

from elmore.errors import ConfigError, ElmoreError, ModelError
from elmore.jobs.stopping import StoppedError
from elmore.tasks.fit.folder import load_task_model
from elmore.tasks.fit.model import TaskModel, find_shapes
from elmore.tasks.fit.settings import load_settings
from elmore.tasks.inputs.word_table import ChosenWords
from elmore.tasks.kinds.table import KINDS
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
    examples = list(one.task.read_unlabeled(place.data / "test.txt"))
    assert list(one.predict(examples)) == list(other.predict(examples))
    assert not one.network.training


def test_a_bilm_that_has_moved_can_be_named(place, tmp_path):
    moved = shutil.copytree(place.model, tmp_path / "moved")
    hidden = place.model.rename(place.folder / "hidden")
    try:
        with pytest.raises(ModelError, match=r"the biLM of .*elmo is missing: .*--model"):
            load_task_model(place.folder / "elmo")
        assert load_task_model(place.folder / "elmo", elmo=str(moved)).mixes
    finally:
        hidden.rename(place.model)


def test_another_bilm_is_refused(place, tmp_path):
    tiny.model(seed=5).save_pretrained(tmp_path / "other")
    with pytest.raises(ModelError, match=r"is not the one that .*elmo was trained with"):
        load_task_model(place.folder / "elmo", elmo=str(tmp_path / "other"))


def test_a_folder_without_a_task_is_reported(place, tmp_path):
    with pytest.raises(ModelError, match=r"has no trained task .*; train one with elmore fit"):
        load_task_model(tmp_path)
    with pytest.raises(ModelError, match="has no trained task"):
        load_task_model(tmp_path / "none")
    with pytest.raises(StoppedError):
        place.fit("unfinished", SHORT, observer=Watcher(stop_after=2))
    with pytest.raises(ModelError, match=r"its training is not finished.*run the same elmore fit"):
        load_task_model(place.folder / "unfinished")


@pytest.mark.parametrize("name", ["words.txt", "weights.safetensors"])
def test_a_missing_or_damaged_file_is_reported(copy, name):
    content = (copy / name).read_bytes()
    for damage in (None, b"", content[: len(content) // 2], content + b"\xff\n"):
        (copy / name).unlink()
        if damage is not None:
            (copy / name).write_bytes(damage)
        with pytest.raises(ModelError, match="train it again") as caught:
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
        {"elmo": {"name": 3, "is_inside": False, "fingerprint": "x"}, "where": "input"},
        {"labels": "AB"},
        {"labels": [1, 2]},
        {"num_trained_words": 10**9},
        {"num_trained_words": 1},
        {"num_trained_words": True},
        {"words_dim": 1.5},
    ],
)
def test_settings_that_are_not_of_a_task_are_reported(copy, change):
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


def change_settings(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "settings.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_a_label_that_comes_twice_is_refused(copy):
    change_settings(copy, lambda content: content["labels"].__setitem__(0, content["labels"][1]))
    with pytest.raises(ModelError, match=r"the label 'A2' is listed twice.*train it again"):
        load_task_model(copy)


def test_a_list_without_labels_is_refused_in_plain_words(copy):
    change_settings(copy, lambda content: content.update(labels=[]))
    with pytest.raises(ModelError, match=r"it has no labels.*train it again") as caught:
        load_task_model(copy)
    assert "index" not in str(caught.value)


def test_weights_that_are_not_numbers_are_refused(copy):
    weights = load_file(copy / "weights.safetensors")
    name, weight = next(iter(weights.items()))
    for number in (float("nan"), float("inf")):
        changed = weight.clone()
        changed.view(-1)[0] = number
        save_file({**weights, name: changed}, copy / "weights.safetensors")
        with pytest.raises(ModelError, match="not finite"):
            load_task_model(copy)


def test_a_task_without_words_is_loaded(place):
    """As one that reads ELMo vectors only: its list of words is an empty file."""
    place.fit("no words", SHORT, "words.min_count=1000", "elmo.where=input")
    assert (place.folder / "no words" / "words.txt").read_bytes() == b""
    assert load_task_model(place.folder / "no words").words.words == []


def test_a_folder_never_makes_elmore_ask_the_hub(place, tmp_path, monkeypatch):
    asked = []

    def fetch(hub_id: str, **_options: Any) -> str:
        asked.append(hub_id)
        return str(place.model)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    folder = shutil.copytree(place.folder / "elmo", tmp_path / "received")
    change_settings(folder, lambda content: content["elmo"].update(name="somebody/bilm"))
    with pytest.raises(ModelError, match=r"'somebody/bilm'.*--model somebody/bilm"):
        load_task_model(folder)
    assert asked == []
    assert load_task_model(folder, elmo="somebody/bilm").mixes
    assert asked == ["somebody/bilm"]


SIZES = {
    "words_dim": lambda content: content.update(words_dim=1 << 20),
    "hidden_dim": lambda content: content["settings"]["task"].update(hidden_dim=20_000),
    "num_layers": lambda content: content["settings"]["task"].update(num_layers=100),
    "filters": lambda content: content["settings"]["characters"].update(
        num_filters=100_000, embedding_dim=1000
    ),
    "labels": lambda content: content.update(labels=[f"{number:x}" for number in range(60_000)]),
    "spans": lambda content: content.update(
        labels=[f"B-{number:x}" for number in range(60_000)],
        settings={**content["settings"], "kind": "roles", "task": {"hidden_dim": 1}},
    ),
}


def load_all(folders: Path) -> list[str]:
    """Load every folder; return what loaded, took over 32 MB or gave a long error."""
    load_task_model(folders / "whole")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lines = []
    for folder in sorted(folders.iterdir()):
        try:
            load_task_model(folder)
            lines.append(f"loaded {folder.name}")
        except ElmoreError as error:
            if len(str(error)) >= 800:
                lines.append(f"{folder.name}: {error}")
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
        if grown > 32:
            lines.append(f"{folder.name} took {grown} MB")
            before += grown * 1024
    return lines


@pytest.mark.slow
def test_declared_sizes_take_no_memory_and_pipes_are_not_waited_for(place, tmp_path):
    def copy_to(name: str) -> Path:
        return shutil.copytree(place.folder / "plain", tmp_path / name)

    copy_to("whole")
    for name, change in SIZES.items():
        change_settings(copy_to(name), change)
    for name in ("words.txt", "weights.safetensors", "settings.json"):
        pipe = copy_to(f"pipe for {name}") / name
        pipe.unlink()
        os.mkfifo(pipe)
    process = os.fork()  # of which the peak memory is measured
    if process == 0:
        signal.alarm(60)  # opening a pipe that nobody writes to would wait forever
        try:
            (tmp_path.parent / "loaded").write_text("\n".join(load_all(tmp_path)))
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    assert (tmp_path.parent / "loaded").read_text() == "loaded whole"


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_task_has_the_shapes_that_its_settings_call_for(kind):
    """What is compared with the weights before any is read, of tasks of every kind."""
    settings = load_settings(kind, changes=["elmo.where=none", "words.dim=4"])
    labels = {"entities": ("iob2", "PER"), "roles": ("O", "B-A0")}.get(kind, ("a", "b"))
    words = ChosenWords(words=["a"], vectors=torch.zeros(3, 4), num_trained=3)
    model = TaskModel(settings, labels=labels, words=words, layers=None)
    weights = model.network.state_dict()
    shapes = find_shapes(settings, labels=labels, words=words, layers=None)
    assert shapes == {name: tuple(weight.shape) for name, weight in weights.items()}


def test_a_device_that_is_not_there_is_reported(place):
    with pytest.raises(ConfigError, match="cannot compute on device 'abacus'"):
        load_task_model(place.folder / "plain", device="abacus")
