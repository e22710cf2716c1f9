"""Settings come from TOML and `--set`; what does not fit is named."""

import pytest

from elmore.config import FORMAT, ModelConfig
from elmore.errors import ConfigError
from elmore.lm.settings import OptimizerSettings, load_settings, read_settings
from elmore.settings import CONFIGS, find_config
from tests.lm.runs import make_settings


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_configuration_that_comes_with_elmore_is_whole(path):
    settings = load_settings(path)
    model = {**settings.model, "format": FORMAT}
    if "words" in model:
        model["words"] = {**model["words"], "num_words": 10}
        model["characters"] = {**model["characters"], "num_units": 10}
    config = ModelConfig.from_json(model)
    assert config.lstm.num_layers == 2
    assert find_config(path.stem) == path


def test_the_original_is_that_of_the_paper():
    settings = load_settings(find_config("original"))
    config = ModelConfig.from_json({**settings.model, "format": FORMAT})
    assert (config.lstm.cell_dim, config.lstm.output_dim) == (4096, 512)
    assert config.characters.output_dim == 2048
    assert config.characters.num_highway_layers == 2
    assert settings.softmax.num_negatives == 8192
    assert (settings.optimizer.name, settings.optimizer.learning_rate) == ("adagrad", 0.2)


def test_the_usual_rate_is_that_of_the_rule():
    rates = [OptimizerSettings(name=name).learning_rate for name in ("adagrad", "adamw")]
    assert rates == [0.2, 0.002]
    assert OptimizerSettings(name="adagrad", learning_rate=0.1).learning_rate == 0.1
    assert OptimizerSettings(name="adagrad").final_share == 1.0


def test_settings_survive_json():
    settings = make_settings("training.precision=bf16")
    assert read_settings(settings.to_json()) == settings


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("training.row=4", "did you mean 'rows'"),
        ("trainin.rows=4", "unknown section 'trainin'"),
        ("training.rows=many", "'rows'"),
        ("training.rows=0", "from 1"),
        ("training.accumulation=3", "multiple"),
        ("training.dropout=1.5", "dropout"),
        ("optimizer.name=sgd", "adagrad, adamw, muon"),
        ("optimizer.learning_rate=-1", "above 0"),
        ("optimizer.weight_decay=0.1", "adamw"),
        ("training.weights=2", "a table of names"),
        ("training.weights.news=-1", "training.weights.news is -1"),
        ("training.weights.news=1.5", "training.weights.news is 1.5"),
        ("softmax.kind=soft", "auto, sampled"),
        ("run.heldout_steps=0", "heldout_steps"),
        ("rows=4", "section.setting=value"),
        ("training.rows", "section.setting=value"),
        ("training.rows.more=1", "no settings of its own"),
    ],
)
def test_a_setting_that_does_not_fit_is_named(change, message):
    with pytest.raises(ConfigError, match=message):
        make_settings(change)


def test_files_that_are_not_settings_are_refused(tmp_path):
    path = tmp_path / "bad.toml"
    with pytest.raises(ConfigError, match="tiny"):
        find_config("huge")
    path.write_text("rows = [")
    with pytest.raises(ConfigError, match="not TOML"):
        load_settings(path)
    path.write_text("[training]\nrows = 4\n")
    with pytest.raises(ConfigError, match=r"model\.lstm"):
        load_settings(path)
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_settings(path)
