import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from elmore.errors import ConfigError
from elmore.model.scalar_mix import LOG_OF_ZERO, ScalarMix
from tests import reference


def test_untrained_mix_is_the_mean():
    layers = torch.randn(3, 2, 5, 4)
    assert_close(ScalarMix(num_layers=3)(layers), layers.mean(dim=0))


def test_one_large_weight_selects_its_layer():
    layers = torch.randn(3, 2, 5, 4)
    mix = ScalarMix(num_layers=3, initial_logits=[0.0, 100.0, 0.0])
    assert_close(mix(layers), layers[1])


@pytest.mark.parametrize("num_layers", [1, 2, 3, 7])
@pytest.mark.parametrize("normalizes", [False, True])
def test_is_that_of_the_formula_in_any_size(num_layers, normalizes):
    random = np.random.default_rng(num_layers)
    layers = random.normal(2.0, 3.0, size=(num_layers, 2, 5, 4))
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], dtype=bool)
    weights = random.normal(size=num_layers)
    mix = ScalarMix(
        num_layers=num_layers, normalizes=normalizes, initial_logits=list(weights)
    ).double()
    with torch.no_grad():
        mix.weights.copy_(torch.from_numpy(weights))
        mix.scale.fill_(1.7)
    found = mix(torch.from_numpy(layers), torch.from_numpy(mask)).detach().numpy()
    wanted = reference.scalar_mix(
        layers, weights=weights, gamma=1.7, layer_norm=normalizes, mask=mask
    )
    np.testing.assert_allclose(found[mask], wanted[mask], atol=1e-12)


def test_masked_positions_do_not_count_in_layer_norm():
    layers = torch.randn(2, 1, 4, 3)
    mask = torch.tensor([[True, True, False, False]])
    mix = ScalarMix(num_layers=2, normalizes=True)
    changed = layers.clone()
    changed[:, :, 2:] = 1000.0
    assert torch.equal(mix(layers, mask)[mask], mix(changed, mask)[mask])


def test_the_penalty_is_the_squared_length_of_the_weights():
    mix = ScalarMix(num_layers=3, initial_logits=[1.0, -2.0, 0.5])
    assert mix.penalty(0.1).item() == pytest.approx(0.1 * 5.25)
    mix.penalty(1.0).backward()
    assert_close(mix.weights.grad, torch.tensor([2.0, -4.0, 1.0]))


@pytest.mark.parametrize("off", [LOG_OF_ZERO, -9e10])  # the latter in AllenNLP's examples
def test_a_layer_that_is_switched_off_has_no_penalty_and_stays_off(off):
    mix = ScalarMix(num_layers=3, initial_logits=[off, 0.5, -2.0])
    assert mix.penalty(0.1).item() == pytest.approx(0.1 * 4.25)
    optimizer = torch.optim.SGD(mix.parameters(), lr=0.1)
    (mix(torch.randn(3, 2, 4)).sum() + mix.penalty(1.0)).backward()
    optimizer.step()
    assert mix.weights[0].item() == torch.tensor(off).item()
    known = ScalarMix.from_weights([0.0, 0.5, 0.5])
    assert known.penalty(1.0).item() == pytest.approx(2 * math.log(2) ** 2)
    assert ScalarMix.from_weights([0.0, 0.0, 3.0]).penalty(1.0).item() == 0.0


def test_a_frozen_mix_learns_nothing():
    mix = ScalarMix(num_layers=2, trainable=False)
    assert not any(weight.requires_grad for weight in mix.parameters())


def test_dropout_is_for_training_only():
    mix = ScalarMix(num_layers=2, dropout=0.5)
    layers = torch.ones(2, 50, 50)
    assert (mix(layers) == 0).any()
    assert_close(mix.eval()(layers), torch.ones(50, 50))


def test_names_both_counts_when_they_differ():
    with pytest.raises(ValueError, match="expected 3 layers to mix, got 2"):
        ScalarMix(num_layers=3)(torch.zeros(2, 1, 1))


@pytest.mark.parametrize("logits", [[1.0], [], "abc", 5, [1.0, 2.0, float("nan")], [None] * 3])
def test_logits_that_do_not_fit_are_named(logits):
    with pytest.raises(ConfigError, match=r"initial_logits is .*; give 3 finite numbers"):
        ScalarMix(num_layers=3, initial_logits=logits)


def test_the_old_name_of_the_logits_still_works():
    with pytest.warns(FutureWarning, match="initial_weights= is now called initial_logits="):
        mix = ScalarMix(num_layers=2, initial_weights=[1.0, 3.0])
    assert mix.weights.tolist() == [1.0, 3.0]


def test_a_mix_that_cannot_be_made_is_explained():
    with pytest.raises(ConfigError, match=r"use ScalarMix\.from_weights"):
        ScalarMix([0.2, 0.3, 0.5])
    with pytest.raises(ConfigError, match="num_layers is 0; give"):
        ScalarMix()
    with pytest.raises(ConfigError, match="dropout is 2; give a number from 0 to 1"):
        ScalarMix(num_layers=3, dropout=2)


@pytest.mark.parametrize(
    "weights",
    [
        [0.2, 0.3, 0.5],
        [0, 1, 2],
        [1e-6, 1e6, 3.0],
        [0.0, 0.0, 0.0],
        [-1.0, -2.0, 0.0],
        [1e-30, 0.0, 1e30],
        np.array([3.0, 1.0, 2.0]),
        torch.tensor([3.0, 1.0, 2.0], requires_grad=True),
    ],
)
def test_given_weights_are_those_of_the_sum(weights):
    layers = torch.randn(3, 4, 5, dtype=torch.float64)
    exact = list(map(float, weights if isinstance(weights, list) else weights.tolist()))
    mixed = ScalarMix.from_weights(weights)(layers.float())
    wanted = sum(weight * layer for weight, layer in zip(exact, layers, strict=True))
    largest = max(map(abs, exact))
    assert_close(mixed.double(), wanted, rtol=0.0, atol=2e-6 * largest)


def test_given_weights_of_zero_and_one_select_a_layer_to_the_bit():
    layers = torch.randn(3, 4, 5)
    assert torch.equal(ScalarMix.from_weights([0.0, 1.0, 0.0])(layers), layers[1])
    assert not ScalarMix.from_weights([0.0, 0.0, 0.0])(layers).any()
    assert torch.equal(ScalarMix.from_weights([0, 0, 2]).double()(layers), 2 * layers[2])


def test_given_weights_can_be_trained_further():
    mix = ScalarMix.from_weights([0.0, 1.0, 3.0], dropout=0.1, normalizes=True)
    (mix(torch.randn(3, 4, 5)).sum() + mix.penalty(1e-3)).backward()
    assert all(weight.grad.isfinite().all() for weight in mix.parameters())
    frozen = ScalarMix.from_weights([1.0], trainable=False)
    assert not any(weight.requires_grad for weight in frozen.parameters())


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, -0.5], "both signs"),
        ([1.0, float("nan")], "finite"),
        ([1e300, 1.0], "finite"),
        ([3e38, 3e38], "finite"),
        ([], "one finite number per layer"),
        (["a"], "one finite number per layer"),
        ("12", "one finite number per layer"),
        (0.5, "one finite number per layer"),
        ([[1.0, 2.0]], "one finite number per layer"),
        (torch.ones(2, 2), "one finite number per layer"),
        ([10**400], "one finite number per layer"),
    ],
)
def test_weights_that_no_softmax_gives_are_refused(weights, message):
    with pytest.raises(ConfigError, match=message):
        ScalarMix.from_weights(weights)
