"""The folder of a training run: what can be resumed, what is refused, what a restart removes."""

import json
import shutil

import pytest

from elmore.errors import ConfigError, DataError, ElmoreError
from elmore.files.atomic import hold_lock
from elmore.files.untrusted import read_json
from elmore.jobs.stopping import StoppedError
from elmore.tasks.fit.plan import FORMAT, TRAINING
from tests import tiny
from tests.tasks.fit.made_up import Place, Watcher, are_alike, write_data

SHORT = "training.max_epochs=1"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = Place(tmp_path_factory.mktemp("plans"))
    made.fit("done", SHORT)
    return made


def test_a_finished_training_is_reported_and_not_repeated(place):
    watcher = Watcher()
    report = place.fit("done", SHORT, "training.checkpoint_minutes=1", observer=watcher)
    assert report.best_epoch == 1
    assert (watcher.steps, watcher.stages) == ([], [])


def test_a_second_process_is_refused(place):
    release = hold_lock(place.folder / "done" / TRAINING.lock_name)
    with pytest.raises(DataError, match=r"another process is working on .*done"):
        place.fit("done", SHORT)
    release()
    place.fit("done", SHORT)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("training.seed=2", "training.seed was 1 and is now 2; use another folder, or"),
        ("task.hidden_dim=6", "started with .*: task.hidden_dim was 5 and is now 6"),
        ("elmo.where=input", "started with .*: elmo.where was 'none' and is now 'input'"),
        (
            "training.max_epochs=2",
            r"max_epochs was 1 and is now 2 \(the run is finished\); .*--restart",
        ),
    ],
)
def test_another_setting_is_refused_by_its_name(place, change, message):
    with pytest.raises(ConfigError, match=message):
        place.fit("done", SHORT, change)


def test_other_data_and_another_model_are_refused(place, tmp_path):
    with pytest.raises(ConfigError, match="other data for train"):
        place.fit("done", SHORT, data_folder=write_data(tmp_path, num_train=3))
    place.fit("input", SHORT, "elmo.where=input")
    with pytest.raises(ConfigError, match="another biLM"):
        place.fit("input", SHORT, "elmo.where=input", elmo=str(tiny.TRAINED_MODEL))


def test_other_weights_under_the_same_name_are_another_model(place, tmp_path):
    model = tmp_path / "model"
    shutil.copytree(place.model, model)
    place.fit("named", SHORT, "elmo.where=input", elmo=str(model))
    shutil.rmtree(model)
    shutil.copytree(tiny.TRAINED_MODEL, model)
    with pytest.raises(ConfigError, match="another biLM"):
        place.fit("named", SHORT, "elmo.where=input", elmo=str(model))


def test_a_checkpoint_that_does_not_fit_is_reported(place, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("a 1 2\n")
    changes = (f"words.file={words}", "training.max_epochs=2")
    with pytest.raises(StoppedError):
        place.fit("words", *changes, observer=Watcher(stop_after=3))
    words.write_text("a 1 3\n")
    with pytest.raises(ConfigError, match="other word vectors"):
        place.fit("words", *changes)
    words.write_text("a 1 2\n")
    # As another version would have built it.
    path = place.folder / "words" / "plan.json"
    path.write_text(path.read_text().replace('"hidden_dim": 5', '"hidden_dim": 6'))
    with pytest.raises(DataError, match=r"checkpoint .* does not fit this network.*start over"):
        place.fit("words", *changes, "task.hidden_dim=6")


def test_data_that_changed_in_place_is_other_data(place, tmp_path):
    data = write_data(tmp_path)
    place.fit("fixed", SHORT, data_folder=data)
    text = (data / "train.txt").read_text()
    (data / "train.txt").write_text(text.replace("A1", "A2", 1))
    with pytest.raises(ConfigError, match="other data for train"):
        place.fit("fixed", SHORT, data_folder=data)


@pytest.mark.slow
def test_a_training_may_be_resumed_for_longer_and_ends_as_if_that_was_planned(place):
    place.fit("long", "training.max_epochs=4")
    with pytest.raises(StoppedError):
        place.fit("longer", "training.max_epochs=2", observer=Watcher(stop_after=3))
    with pytest.raises(
        ConfigError, match=r"started with .*training.max_epochs was 2 and is now 1;"
    ):
        place.fit("longer", SHORT)
    changes = ("training.max_epochs=4", "training.patience=11", "training.checkpoint_minutes=3")
    report = place.fit("longer", *changes)
    assert len(report.curve) == 4
    assert are_alike(place.folder / "longer", place.folder / "long")
    kept = read_json(place.folder / "longer" / "settings.json")["settings"]
    assert kept["training"]["max_epochs"] == 4


def test_the_working_folder_makes_no_difference(place, monkeypatch, tmp_path):
    words = place.folder / "vectors.txt"
    words.write_text("a 1 0\nbad 0 1\n")
    monkeypatch.chdir(place.folder)
    how = {"elmo": "model", "data_folder": place.data.relative_to(place.folder)}
    place.fit("moved", SHORT, "elmo.where=input", "words.file=vectors.txt", **how)
    monkeypatch.chdir(tmp_path)
    watcher = Watcher()
    place.fit(
        "moved", SHORT, "elmo.where=input", f"words.file={words}", elmo=str(place.model),
        observer=watcher,
    )  # fmt: skip
    assert watcher.steps == []
    assert read_json(place.folder / "moved" / "settings.json")["elmo"]["name"] == str(place.model)


@pytest.mark.slow
def test_a_restart_removes_what_a_training_wrote_and_nothing_else(place):
    place.fit("again", "training.max_epochs=2")
    mine = place.folder / "again" / "notes.txt"
    mine.write_text("mine")
    place.fit("again", SHORT, restart=True)
    assert mine.read_text() == "mine"
    assert are_alike(place.folder / "again", place.folder / "done")
    assert set(place.list_files("again")) - {"notes.txt"} == set(place.list_files("done"))


def test_a_restart_that_cannot_start_removes_nothing(place, tmp_path):
    data = write_data(tmp_path / "data")
    (data / "dev.txt").write_text("untagged\n\n")
    before = place.list_files("done")
    for how in (
        {"data_folder": data},
        {"elmo": str(tmp_path / "none"), "change": "elmo.where=input"},
        {"change": f"words.file={tmp_path}/none.txt"},
        {"device": "abacus"},
    ):
        changes = [SHORT, *([how.pop("change")] if "change" in how else [])]
        with pytest.raises(ElmoreError):
            place.fit("done", *changes, restart=True, **how)
        assert place.list_files("done") == before
    place.fit("done", SHORT)


def test_what_cannot_start_leaves_no_folder(place, tmp_path):
    data = write_data(tmp_path / "data")
    (data / "dev.txt").write_text("untagged\n\n")
    with pytest.raises(DataError, match=r"dev.txt, line 1"):
        place.fit("new/deep", SHORT, data_folder=data)
    with pytest.raises(ElmoreError, match="none"):
        place.fit("new/deep", SHORT, "elmo.where=input", elmo=str(tmp_path / "none"))
    assert not (place.folder / "new").exists()
    empty = place.folder / "empty"
    empty.mkdir()
    with pytest.raises(DataError):
        place.fit("empty", SHORT, data_folder=data)
    assert list(empty.iterdir()) == []


def test_a_folder_of_other_things_is_refused_and_left_alone(place):
    for restart in (False, True):
        with pytest.raises(DataError, match="contains other files"):
            place.fit("data", SHORT, restart=restart)
    assert place.list_files("data") == ["dev.txt", "test.txt", "train.txt"]
    with pytest.raises(DataError, match="is a file"):
        place.fit("data/dev.txt", SHORT)


def test_a_damaged_plan_or_report_is_reported(place):
    place.fit("broken", SHORT)
    plan, report = (place.folder / "broken" / name for name in ("plan.json", "report.json"))
    whole = plan.read_text()
    for damage, message in (
        ("{", "not JSON"),
        ("{}", "format"),
        (json.dumps({"format": FORMAT}), "plan.json cannot"),
    ):
        plan.write_text(damage)
        with pytest.raises(ElmoreError, match=message):
            place.fit("broken", SHORT)
    plan.write_text(whole)
    report.write_text("{}")
    with pytest.raises(DataError, match=r"report.json is damaged .*--restart"):
        place.fit("broken", SHORT)
