import torch

from elmore.build import build_bilm, initialize, weight_shapes, without_weights
from tests import tiny


def test_starting_weights_are_the_same_for_one_seed():
    first, second, other = (build_bilm(tiny.byte_config()) for _ in range(3))
    initialize(first, seed=1)
    initialize(second, seed=1)
    initialize(other, seed=2)
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, second.state_dict()[name])
    assert not torch.equal(first.forward_lm[0].input_weight, other.forward_lm[0].input_weight)


def test_highways_start_by_carrying_their_input_through():
    bilm = build_bilm(tiny.byte_config())
    initialize(bilm, seed=0)
    assert (bilm.token_encoder.highways[0].gate.bias == -2.0).all()
    assert (bilm.forward_lm[0].bias == 0.0).all()


def test_a_network_without_weights_has_the_shapes_of_one_with_weights():
    with without_weights():
        empty = build_bilm(tiny.word_and_char_config())
    assert all(weight.is_meta for weight in empty.parameters())
    assert weight_shapes(empty) == weight_shapes(build_bilm(tiny.word_and_char_config()))
