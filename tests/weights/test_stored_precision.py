"""Weights in half the bytes: rounded to the nearest number, and only once; nothing overflows."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from elmore.errors import ConfigError, ModelError
from elmore.lm.language_model import LanguageModel, load_language_model
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.loading import load_model
from elmore.weights.model_folder import find_store
from tests import tiny
from tests.lm.slow_language_model import make_language_model
from tests.weights.peer_files import names
from tests.weights.refusals import assert_refused

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
HALVES = ["f16", "bf16"]


def round_slowly(numbers: np.ndarray, store: str) -> np.ndarray:
    """The oracle: the nearest number that the store has, of two as near the even one."""
    if store == "f16":
        return numbers.astype(np.float16).astype(np.float32)
    if store == "bf16":  # the upper half of single precision
        bits = numbers.view(np.uint32).astype(np.uint64)
        bits += 0x7FFF + ((bits >> 16) & 1)
        return ((bits >> 16) << 16).astype(np.uint32).view(np.float32)
    return numbers


def read_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def set_weight(model: ElmoModel, number: float) -> None:
    with torch.no_grad():
        model.bilm.forward_lm[1].input_weight[2, 3] = number


@pytest.mark.parametrize("store", DTYPES)
@pytest.mark.parametrize("config", [tiny.byte_config, tiny.word_and_char_config])
def test_matrices_are_rounded_and_the_rest_is_kept(config, store, tmp_path):
    model = tiny.model(config())
    model.bilm.initial_cell.normal_()
    model.save_pretrained(tmp_path, store=store)
    tensors = load_file(tmp_path / "model.safetensors")
    loaded = load_model(tmp_path).bilm.state_dict()
    for name, weight in model.bilm.state_dict().items():
        is_small = weight.ndim == 1 or name in ("initial_hidden", "initial_cell")
        kept = "f32" if is_small else store
        assert tensors[name].dtype == DTYPES[kept], name
        assert loaded[name].dtype == torch.float32
        assert np.array_equal(loaded[name].numpy(), round_slowly(weight.numpy(), kept)), name
    assert find_store(tmp_path / "model.safetensors") == store
    assert json.loads((tmp_path / "config.json").read_text()).get("store", "f32") == store


@pytest.mark.parametrize("store", HALVES)
@pytest.mark.parametrize("is_adaptive", [False, True])
def test_a_language_model_is_rounded_once_and_then_stays(is_adaptive, store, tmp_path):
    model = make_language_model(is_adaptive=is_adaptive)
    model.save(tmp_path / "once", store=store)
    loaded = load_language_model(tmp_path / "once")  # so its fingerprint is that of what is read
    assert loaded.elmo.fingerprint() != model.elmo.fingerprint()
    for name, weight in model.softmax.state_dict().items():
        wanted = round_slowly(weight.numpy(), store if weight.ndim > 1 else "f32")
        assert np.array_equal(loaded.softmax.state_dict()[name].numpy(), wanted), name
    assert torch.equal(loaded.log_shares, model.log_shares)
    loaded.save(tmp_path / "twice", store=store)
    assert read_files(tmp_path / "twice") == read_files(tmp_path / "once")
    loaded.save(tmp_path / "widened")
    again = load_language_model(tmp_path / "widened")
    assert again.elmo.fingerprint() == loaded.elmo.fingerprint()


def test_a_model_in_another_precision_is_stored_as_asked(tmp_path):
    for dtype in (torch.float64, torch.bfloat16):
        model = make_language_model()
        model.elmo.to(dtype)
        model.softmax.to(dtype)
        for store in DTYPES:
            model.save(tmp_path / store, store=store)
            assert find_store(tmp_path / store / "model.safetensors") == store
            assert find_store(tmp_path / store / "softmax.safetensors") == store
            load_language_model(tmp_path / store)


def test_half_precision_takes_half_the_bytes(tmp_path):
    model = tiny.model(tiny.byte_config(cell_dim=300, output_dim=100))
    sizes: dict[str, int] = {}
    for store in DTYPES:
        model.save_pretrained(tmp_path / store, store=store)
        sizes[store] = (tmp_path / store / "model.safetensors").stat().st_size
    assert max(sizes["f16"], sizes["bf16"]) < 0.52 * sizes["f32"]


# The softmax in int8.


def quantize_slowly(matrix: np.ndarray) -> np.ndarray:
    """The oracle: each number as the nearest multiple of a 127th of its row's largest."""
    steps = np.abs(matrix.astype(np.float64)).max(axis=1, keepdims=True) / 127
    return np.round(matrix / np.where(steps > 0, steps, 1)) * steps


@pytest.mark.parametrize("is_adaptive", [False, True])
def test_a_softmax_in_int8_beside_other_weights_in_f16(is_adaptive, tmp_path):
    model = make_language_model(is_adaptive=is_adaptive)
    model.save(tmp_path / "once", store="f16", store_softmax="int8")
    assert find_store(tmp_path / "once" / "model.safetensors") == "f16"
    assert find_store(tmp_path / "once" / "softmax.safetensors") == "int8"
    assert json.loads((tmp_path / "once" / "softmax.json").read_text())["format"] == 2
    loaded = load_language_model(tmp_path / "once")
    for name, weight in model.softmax.state_dict().items():
        found = loaded.softmax.state_dict()[name].numpy()
        if weight.ndim == 1:
            assert np.array_equal(found, weight.numpy()), name
        else:
            assert np.allclose(found, quantize_slowly(weight.numpy()), rtol=1e-4, atol=0), name
    assert torch.equal(loaded.log_shares, model.log_shares)
    loaded.save(tmp_path / "twice", store="f16", store_softmax="int8")
    assert read_files(tmp_path / "twice") == read_files(tmp_path / "once")
    loaded.save(tmp_path / "widened")
    again = load_language_model(tmp_path / "widened").softmax.state_dict()
    assert all(torch.equal(again[name], x) for name, x in loaded.softmax.state_dict().items())


def test_int8_is_read_only_where_the_settings_announce_it(tmp_path):
    make_language_model().save(tmp_path, store_softmax="int8")
    settings = json.loads((tmp_path / "softmax.json").read_text())
    (tmp_path / "softmax.json").write_text(json.dumps({**settings, "format": 1}))
    assert_refused(lambda: load_language_model(tmp_path), "its settings have no weight")
    for found in (3, True, "2", None):
        (tmp_path / "softmax.json").write_text(json.dumps({**settings, "format": found}))
        assert_refused(lambda: load_language_model(tmp_path), "reads 1 and 2; update elmore")


@pytest.mark.parametrize("damage", ["scales too short", "floats", "scales not finite", "no scales"])
def test_damaged_int8_is_refused(damage, tmp_path):
    make_language_model().save(tmp_path, store_softmax="int8")
    path = tmp_path / "softmax.safetensors"
    tensors = load_file(path)
    scales = tensors["weight.row_scales"]
    if damage == "scales too short":
        tensors["weight.row_scales"] = scales[1:].clone()
    elif damage == "floats":
        tensors["weight"] = tensors["weight"].float()
    elif damage == "scales not finite":
        scales[2] = torch.nan
    else:
        del tensors["weight.row_scales"]
    save_file(tensors, path, metadata={"format": "pt"})
    assert_refused(lambda: load_language_model(tmp_path), "softmax.safetensors: weight 'weight")


def test_a_softmax_that_is_not_finite_is_not_stored_as_int8(tmp_path):
    model = make_language_model()
    with torch.no_grad():
        model.softmax.weight[1, 0] = torch.inf
    assert_refused(lambda: model.save(tmp_path / "new", store_softmax="int8"), "not finite")
    assert not (tmp_path / "new").exists()


# Numbers that do not fit.


@pytest.mark.parametrize(
    ("store", "largest", "too_large", "remedy"),
    [
        ("f16", 65519.0, 65520.0, "the largest f16 is 65504; store it as bf16"),
        ("f16", -65519.0, -65520.0, "the largest f16 is 65504; store it as bf16"),
        ("bf16", 3.39e38, 3.4e38, r"the largest bf16 is 3.38953e\+38; store it as f32"),
    ],
)
def test_a_number_that_would_become_infinite_is_refused(
    store, largest, too_large, remedy, tmp_path
):
    model = tiny.model()
    set_weight(model, largest)
    model.save_pretrained(tmp_path, store=store)
    load_model(tmp_path)
    before = read_files(tmp_path)
    set_weight(model, too_large)
    match = rf"model.safetensors: weight 'forward_lm.1.input_weight' has the number .* {remedy}"
    assert_refused(lambda: model.save_pretrained(tmp_path, store=store), match)
    assert read_files(tmp_path) == before


def test_a_softmax_that_does_not_fit_leaves_no_model_behind(tmp_path):
    model = make_language_model()
    with torch.no_grad():
        model.softmax.weight[3, 1] = 1e6
        model.softmax.bias[2] = -1e6  # which is kept in single precision
    match = r"softmax.safetensors: weight 'weight' has the number 1e\+06"
    assert_refused(lambda: model.save(tmp_path / "new", store="f16"), match)
    assert not (tmp_path / "new").exists()
    model.save(tmp_path / "new", store="bf16")
    assert load_language_model(tmp_path / "new").softmax.bias[2] == -1e6


def test_a_bilm_that_does_not_fit_leaves_the_old_model_and_softmax_whole(tmp_path):
    make_language_model().save(tmp_path)
    before = read_files(tmp_path)
    model = make_language_model(seed=5)
    set_weight(model.elmo, 1e5)
    assert_refused(lambda: model.save(tmp_path, store="f16"), "store it as bf16")
    assert read_files(tmp_path) == before


# Mistakes.


@pytest.mark.parametrize("store", ["f8", "int8", "", None, 16])
def test_an_unknown_store_is_refused_before_anything_is_written(store, tmp_path):
    model = make_language_model()
    for save in (model.save, model.elmo.save_pretrained):
        with pytest.raises(ConfigError, match="choose one of: f32, f16, bf16"):
            save(tmp_path / "new", store=store)
    if store not in ("int8", None):
        with pytest.raises(ConfigError, match="choose one of: f32, f16, bf16, int8"):
            model.save(tmp_path / "new", store_softmax=store)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("store", ["f8", None, [], {}, 7, True])
def test_a_damaged_store_in_the_settings_is_refused(store, tmp_path):
    tiny.model().save_pretrained(tmp_path, store="f16")
    settings = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**settings, "store": store}))
    assert_refused(lambda: load_model(tmp_path), r"config.json: store is")


def test_a_file_without_weights_reports_no_store(tmp_path):
    save_file({}, tmp_path / "empty.safetensors")
    (tmp_path / "cut.safetensors").write_bytes(b"12345")
    for name in names(tmp_path):
        with pytest.raises(ModelError, match=name):
            find_store(tmp_path / name)


def test_a_folder_in_single_precision_is_what_it_was_before_there_was_a_choice(tmp_path):
    model: LanguageModel = make_language_model()
    model.save(tmp_path)
    assert "store" not in json.loads((tmp_path / "config.json").read_text())
    assert {tensor.dtype for tensor in load_file(tmp_path / "model.safetensors").values()} == {
        torch.float32
    }
