"""Weights that are read one by one: the same numbers and fingerprint, and little memory."""

import gc
import weakref
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from elmore.errors import ModelError
from elmore.weights.elmo_model import ElmoModel
from tests import tiny


def leave_unread(model: ElmoModel, noted: list[str]) -> ElmoModel:
    """Return a copy of a model that reads its weights later, and notes which."""
    weights = model.bilm.state_dict()

    def make_reader(name: str) -> Callable[[], Tensor]:
        def read() -> Tensor:
            noted.append(name)
            return weights[name].clone()

        return read

    unread = ElmoModel(model.config, characters=model.characters, words=model.words)
    unread.bilm.to("meta")
    unread.leave_unread({name: make_reader(name) for name in weights})
    return unread


@pytest.mark.parametrize("config", [tiny.byte_config(), tiny.word_and_char_config()])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_weights_can_be_taken_in_any_order(config, is_reversed):
    model, noted = tiny.model(config), []
    unread = leave_unread(model, noted).unread
    assert noted == []
    names = sorted(model.bilm.state_dict(), reverse=is_reversed)
    for name in names:
        assert torch.equal(unread.take(name), model.bilm.state_dict()[name])
    assert noted == sorted(names)  # each once
    assert unread.fingerprint() == model.fingerprint()


def test_the_fingerprint_does_not_depend_on_what_was_taken():
    model = tiny.model()
    assert leave_unread(model, []).fingerprint() == model.fingerprint()
    unread = leave_unread(model, [])
    unread.unread.take("forward_lm.0.bias")
    assert unread.fingerprint() == model.fingerprint()
    unread.release_weights()
    assert unread.is_released
    assert unread.fingerprint() == model.fingerprint()


def test_a_weight_that_was_taken_is_not_kept():
    unread = leave_unread(tiny.model(), []).unread
    for name in ("backward_lm.0.bias", "backward_lm.0.input_weight"):
        weight = weakref.ref(unread.take(name))
        gc.collect()
        assert weight() is None


def test_using_a_model_reads_its_weights():
    model, noted = tiny.model(), []
    unread = leave_unread(model, noted)
    assert all(weight.is_meta for weight in unread.bilm.parameters())
    assert set(unread.state_dict()) == set(model.state_dict())
    assert sorted(noted) == sorted(model.bilm.state_dict())
    assert unread.unread is None
    assert unread.fingerprint() == model.fingerprint()


def test_weights_that_are_set_aside_come_back():
    model = tiny.model()
    fingerprint = model.fingerprint()
    model.set_weights_aside()
    assert all(weight.is_meta for weight in model.bilm.parameters())
    model.require_weights()
    assert model.fingerprint() == fingerprint


def test_a_weight_of_another_shape_is_refused_when_it_is_read():
    """The file may have been replaced after its shapes were checked."""
    model = tiny.model()
    weights = model.bilm.state_dict() | {"forward_lm.1.state_weight": torch.zeros(48, 6)}
    model.leave_unread({name: weights[name].clone for name in weights})
    with pytest.raises(ModelError, match=r"state_weight' has shape \(48, 6\), but .* \(48, 5\)"):
        model.unread.take("forward_lm.1.state_weight")
