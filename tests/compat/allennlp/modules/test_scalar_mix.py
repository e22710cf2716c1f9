import numpy as np
import pytest
import torch

from elmore.compat.allennlp.common.checks import ConfigurationError
from elmore.compat.allennlp.modules.scalar_mix import ScalarMix
from tests import reference

WEIGHTS = [0.1, -0.2, 0.7]


def make(**settings):
    mix = ScalarMix(3, initial_scalar_parameters=WEIGHTS, **settings)
    with torch.no_grad():
        mix.gamma.fill_(0.5)
    return mix


def test_parameters_have_allennlps_names_and_shapes():
    shapes = {name: tuple(weight.shape) for name, weight in make().state_dict().items()}
    numbers = {f"scalar_parameters.{number}": (1,) for number in range(3)}
    assert shapes == {"gamma": (1,), **numbers}
    assert all(weight.requires_grad for weight in ScalarMix(2).parameters())
    assert not any(weight.requires_grad for weight in make(trainable=False).parameters())


def test_a_mix_is_the_weighted_sum():
    layers = torch.randn(3, 2, 4, 5)
    wanted = reference.scalar_mix(
        layers.double().numpy(), weights=np.array(WEIGHTS), gamma=0.5, layer_norm=False
    )
    np.testing.assert_allclose(make()(list(layers)).detach(), wanted, atol=1e-6)
    torch.testing.assert_close(ScalarMix(3)(list(layers)), layers.mean(dim=0))


def test_layer_norm_counts_real_positions_and_applies_to_all():
    layers = torch.randn(3, 2, 4, 5)
    mask = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]])
    found = make(do_layer_norm=True)(list(layers), mask).detach().numpy()
    wanted = np.zeros((2, 4, 5))
    shares = np.exp(WEIGHTS) / np.exp(WEIGHTS).sum()
    for share, layer in zip(shares, layers.double().numpy(), strict=True):
        real = layer[mask.numpy() == 1]
        wanted += 0.5 * share * (layer - real.mean()) / real.std()
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_other_numbers_of_layers_are_errors():
    with pytest.raises(ConfigurationError, match="5 tensors"):
        make()([torch.ones(1, 1)] * 5)
    with pytest.raises(ConfigurationError, match="mixture_size is 3"):
        ScalarMix(3, initial_scalar_parameters=[0.0, 0.0])
    with pytest.raises(ConfigurationError, match="mixture_size is 3"):
        ScalarMix(3, initial_scalar_parameters=[])


def test_initial_parameters_may_be_an_array():
    mix = ScalarMix(3, initial_scalar_parameters=np.array(WEIGHTS))
    assert torch.cat(list(mix.scalar_parameters)).tolist() == pytest.approx(WEIGHTS)
