from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from elmore.config import (
    ADDED_LATER,
    VECTORS,
    CharacterConfig,
    LSTMConfig,
    ModelConfig,
    Precision,
    StatePolicy,
    read_precision,
)
from elmore.errors import ConfigError
from elmore.settings import check_number, check_positive, check_share, read_section
from tests import tiny


@pytest.mark.parametrize("config", [tiny.byte_config(), tiny.word_and_char_config()])
def test_settings_come_back_from_json(config):
    assert ModelConfig.from_json(config.to_json()) == config


def test_a_field_added_later_is_saved_only_if_it_was_changed():
    @dataclass(frozen=True, kw_only=True)
    class NewerConfig(CharacterConfig):
        encoder: str = field(default="cnn", metadata=ADDED_LATER)

    old = tiny.byte_config()
    assert old.characters is not None
    settings = old.to_json()
    newer = replace(old, characters=NewerConfig(**settings["characters"]))
    assert newer.to_json() == settings
    assert asdict(newer)["characters"] == {**asdict(old)["characters"], "encoder": "cnn"}
    changed = NewerConfig(**settings["characters"], encoder="mean")
    saved = replace(old, characters=changed).to_json()
    assert saved["characters"] == {**settings["characters"], "encoder": "mean"}


def test_an_unknown_setting_suggests_the_right_one():
    settings = tiny.byte_config().to_json()
    settings["lstm"]["layers"] = 2
    with pytest.raises(ConfigError, match=r"unknown setting 'layers' in 'lstm'; did you mean"):
        ModelConfig.from_json(settings)
    with pytest.raises(ConfigError, match=r"unknown setting 'lstms'.* known: |did you mean 'lstm'"):
        ModelConfig.from_json({**tiny.byte_config().to_json(), "lstms": 1})


def test_a_newer_format_asks_for_an_update():
    with pytest.raises(ConfigError, match="format 99, this elmore reads 1; update"):
        ModelConfig.from_json({**tiny.byte_config().to_json(), "format": 99})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LSTMConfig(cell_dim=0, output_dim=1), "cell_dim is 0; give a whole number"),
        (lambda: LSTMConfig(cell_dim=10**30, output_dim=1), "cell_dim is 1000000"),
        (lambda: LSTMConfig(cell_dim=True, output_dim=1), "cell_dim is True"),
        (lambda: LSTMConfig(cell_dim=4, output_dim=2, cell_clip=-1.0), "cell_clip is -1.0"),
        (lambda: LSTMConfig(cell_dim=4, output_dim=2, cell_clip=float("nan")), "cell_clip is nan"),
        (lambda: LSTMConfig(cell_dim=4, output_dim=2, cell_clip=1e39), "cell_clip is 1e[+]39"),
        (lambda: LSTMConfig(cell_dim=4, output_dim=2, forget_bias=1e39), "forget_bias is 1e[+]39"),
        (lambda: LSTMConfig(cell_dim=4, output_dim=2, has_projection=False), "make them equal"),
        (lambda: CharacterConfig(filters=()), "there are 0 filters"),
        (lambda: CharacterConfig(filters=((1, 2, 3),)), "give pairs of width and number"),
        (lambda: CharacterConfig(filters=((60, 1),)), "width 60 does not fit into max_chars = 50"),
        (lambda: CharacterConfig(activation="gelu"), "choose one of: relu, tanh"),
        (lambda: ModelConfig(lstm=LSTMConfig(cell_dim=2, output_dim=1)), "'characters', 'words'"),
        (
            lambda: ModelConfig(
                lstm=LSTMConfig(cell_dim=9, output_dim=5),
                characters=CharacterConfig(),
                has_token_projection=False,
            ),
            r"token vector has 512 numbers and the LSTM's output 5; make them equal",
        ),
    ],
)
def test_what_cannot_be_built_is_refused_with_its_value(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("lstm", "cell_dim", "12"),
        ("lstm", "has_residuals", 1),
        ("lstm", "cell_clip", "3"),
        ("about", "name", 7),
        ("characters", "max_chars", 9.0),
    ],
)
def test_a_setting_of_the_wrong_type_is_named(section, name, value):
    settings = tiny.byte_config().to_json()
    settings[section][name] = value
    with pytest.raises(ConfigError, match=name):
        ModelConfig.from_json(settings)


@dataclass(frozen=True, kw_only=True)
class Mixed:
    """Fields of the types that settings have."""

    column: str | int = 2
    share: int | float | None = None
    is_on: bool | str = False
    state: StatePolicy | None = None
    pairs: tuple[tuple[str, int], ...] = ()
    anything: Any = 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("column", "last"),
        ("column", 3),
        ("share", 1),
        ("share", 0.5),
        ("share", None),
        ("is_on", True),
        ("is_on", "auto"),
        ("state", "reset"),
        ("state", None),
        ("pairs", [["a", 1]]),
        ("anything", "a"),
    ],
)
def test_a_setting_may_be_of_any_type_of_its_union(name, value):
    assert getattr(read_section(Mixed, "task", {name: value}), name) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("column", True),
        ("column", 2.0),
        ("column", None),
        ("column", ["last"]),
        ("share", "half"),
        ("share", False),
        ("share", float("nan")),
        ("is_on", 1),
        ("pairs", None),
        ("anything", None),
    ],
)
def test_a_setting_of_no_type_of_its_union_is_named(name, value):
    with pytest.raises(ConfigError, match=f"setting '{name}' in 'task' is .* must be"):
        read_section(Mixed, "task", {name: value})


@pytest.mark.parametrize(
    ("check", "good", "bad", "wanted"),
    [
        (check_positive, [1, 0.001], [0, -1.0, float("nan"), "1", True], "a number above 0"),
        (partial(check_number, least=1), [1, 1e9], [0.9, None, float("inf")], "of at least 1"),
        (partial(check_number, least=0, most=0.5), [0, 0.5], [-0.1, 0.51, "0"], "from 0 to 0.5"),
        (check_share, [0, 0.99], [1, 1.0, -0.1, False], "a number from 0 to 0.99"),
    ],
)
def test_numbers_out_of_bounds_are_named_with_their_bounds(check, good, bad, wanted):
    for value in good:
        check("task.it", value)
    for value in bad:
        with pytest.raises(ConfigError, match=f"task.it is {value!r}; give .*{wanted}"):
            check("task.it", value)


def test_widths_follow_from_the_parts():
    config = tiny.word_and_char_config()
    assert (config.token_dim, config.num_mixed_layers, config.vector_dim) == (9, 3, 10)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("f16", "f16"), (Precision.F32, "f32"), (np.float16, "f16"), (np.dtype("float32"), "f32"),
     (torch.float16, "f16")],
)  # fmt: skip
def test_a_number_format_has_one_spelling_and_types_are_understood(value, expected):
    assert read_precision("dtype", value, VECTORS) is Precision(expected)


@pytest.mark.parametrize(("value", "expected"), [("float32", "f32"), ("half", "f16")])
def test_other_spellings_of_number_formats_work_with_a_notice(value, expected):
    with pytest.warns(FutureWarning, match=f"dtype '{value}' is now spelled '{expected}'"):
        assert read_precision("dtype", value, VECTORS) is Precision(expected)


@pytest.mark.parametrize("value", ["int8", "bfloat16", "f64", None, 16, {}])
def test_a_format_that_a_use_does_not_have_is_refused(value):
    with pytest.raises(ConfigError, match=r"dtype is .*; choose one of: f32, f16$"):
        read_precision("dtype", value, VECTORS)
