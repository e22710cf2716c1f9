import json

import pytest

from elmore.errors import ConfigError
from elmore.tasks.fit.settings import TASK_CONFIGS, load_settings, read_settings
from elmore.tasks.kinds.table import KINDS


def test_a_change_wins_over_the_file_and_the_file_over_the_defaults(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[task]\nhidden_dim = 7\n[training]\nseed = 3\n")
    settings = load_settings("ner", config=path, changes=["training.seed=4", "elmo.where=both"])
    assert settings.kind == "entities"
    assert settings.task["hidden_dim"] == 7
    assert (settings.training.seed, settings.training.batch_size) == (4, 32)
    assert settings.elmo.where == "both"


def test_settings_survive_json():
    settings = load_settings("tags", changes=["training.max_examples=5", "words.file=a.txt"])
    assert read_settings(json.loads(json.dumps(settings.to_json()))) == settings


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("training.max_epoch=3", "unknown setting 'max_epoch' in 'training'; did you mean"),
        ("trainings.seed=3", "unknown section 'trainings'; did you mean 'training'?"),
        ("task.hidden_dims=3", "unknown setting 'hidden_dims' in 'task'"),
        ("seed=3", "not of the form section.setting=value"),
        ("elmo.where=middle", "elmo.where is 'middle'; choose one of: none, input, output, both"),
        ("elmo.layers=2", "elmo.layers is 2; choose one of: mix, average, top"),
        ("elmo.dropout=1", "elmo.dropout is 1; give a number from 0 to 0.99"),
        ("elmo.rate_decay=0.5", "elmo.rate_decay is 0.5; give a number of at least 1"),
        ("elmo.penalty=-1", "elmo.penalty is -1; give a number of at least 0"),
        ("training.share=0", "training.share is 0; give a number above 0"),
        ("training.share=1.5", "training.share is 1.5; give a share from 0 to 1"),
        ("training.batch_size=0", "training.batch_size is 0"),
        ("training.learning_rate=nan", "learning_rate"),
        ("training.max_examples=0", "training.max_examples is 0"),
        ("words.file=3", "'file' in 'words' is 3; it must be text"),
        ("words.trained=1", "it must be true or false"),
        ("characters.width=31", "characters.width is 31"),
        ("kind.x=3", "has no settings of its own"),
        ("training.max_epochs=" + "9" * 5000, "the value is too long"),
        ("training.max_epochs=" + "[" * 5000, "the value is too long"),
    ],
)
def test_invalid_values_are_reported(change, message):
    with pytest.raises(ConfigError) as caught:
        load_settings("tags", changes=[change])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_file_is_blamed_for_what_it_says(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[task]\nhidden_dimm = 7\n")
    with pytest.raises(ConfigError, match=r"mine.toml: unknown setting 'hidden_dimm'"):
        load_settings("tags", config=path, changes=["training.seed=4"])
    path.write_text("[task\n")
    with pytest.raises(ConfigError, match=r"mine.toml is not TOML"):
        load_settings("tags", config=path)
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        load_settings("tags", config=path)
    with pytest.raises(ConfigError, match=r"cannot read .*none.toml"):
        load_settings("tags", config=tmp_path / "none.toml")
    path.write_text('kind = "roles"\n')
    with pytest.raises(ConfigError, match="settings are for the task 'roles', not 'tags'"):
        load_settings("tags", config=path)


def test_changes_are_checked_together():
    changes = ["characters.width=40", "characters.max_chars=50"]
    assert load_settings("tags", changes=changes).characters.width == 40


def test_a_path_is_whole_wherever_it_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = load_settings("tags", changes=["words.file=glove.txt"]).with_absolute_paths()
    assert settings.words.file == str(tmp_path / "glove.txt")
    assert load_settings("tags").with_absolute_paths().words.file is None


def test_the_path_of_a_circular_link_is_left_to_the_reader(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "circle").symlink_to("circle")
    settings = load_settings("tags", changes=["words.file=circle"]).with_absolute_paths()
    assert settings.words.file == str(tmp_path / "circle")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_file_of_another_task_is_refused(kind):
    assert load_settings(kind).kind == kind
    other = "tags" if kind != "tags" else "texts"
    with pytest.raises(
        ConfigError, match=f"these settings are for the task '{other}', not '{kind}'"
    ):
        load_settings(kind, config=TASK_CONFIGS / f"{other}.toml")
