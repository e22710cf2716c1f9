"""Packed weights: what they keep, that they can be copied and sent, and that they go stale never.

Rounding the weights and computing with torch stands in for a kernel where there is none. Only the
inputs of a product differ then: whole steps of a 2048th (a 128th with VNNI) of the largest for
int8, bf16 where a CPU multiplies bf16. `CLOSE` bounds what that does to a vector of a tiny model.
"""

import pickle
from copy import deepcopy

import numpy as np
import pytest
import torch

from elmore.config import WEIGHTS_IN_MEMORY
from elmore.errors import ConfigError
from elmore.kernels import reading
from elmore.kernels.library import find_kernel
from elmore.kernels.packed import PackedMatrix, Precision, interleave_numbers, narrow
from elmore.kernels.tokens import PackedLinear
from elmore.model.packed_bilm import PackedBiLM, freeze, round_weights
from tests import tiny
from tests.kernels import lstms, variants
from tests.kernels.lstms import Case

CASE = Case(lengths=(5, 3, 1), output_dim=17, cell_dim=33)
SENTENCES = [["the", "bank", "of", "a", "río"], ["a"], []]


def close(precision: Precision) -> float:
    rounding = lstms.rounding_of_inputs(precision)
    if rounding is lstms.keep:
        return 2e-6
    return 5e-3 if rounding is lstms.round_to_whole and lstms.input_limit(1) > 127 else 0.1


@pytest.fixture(params=variants.NATIVE, scope="module")
def kernel(request):
    with variants.using(request.param):
        yield find_kernel()


@pytest.fixture(params=["bytes", "word_and_char"])
def model(request):
    configs = {"bytes": tiny.byte_config(), "word_and_char": tiny.word_and_char_config()}
    return tiny.model(configs[request.param], scale=0.3)


def embed(bilm, model):
    """Return the layers of some sentences, by a biLM that is plain or packed."""
    batch = model.batch(SENTENCES)
    with torch.no_grad():
        tokens = bilm.token_encoder(batch.tokens.char_ids, batch.tokens.word_ids)
        return bilm.contextualize(tokens[batch.positions], batch.lengths).layers


@pytest.mark.parametrize("precision", WEIGHTS_IN_MEMORY)
def test_a_copy_that_was_sent_gives_the_same_bits(kernel, model, precision):
    packed = freeze(model.bilm, precision=precision)
    assert isinstance(packed, PackedBiLM)
    wanted = embed(packed, model)
    assert torch.equal(embed(pickle.loads(pickle.dumps(packed)), model), wanted)
    assert torch.equal(embed(deepcopy(packed), model), wanted)
    assert torch.equal(embed(packed, model), wanted)


def test_a_network_that_has_read_can_be_sent(kernel, model):
    wanted = embed(model.bilm, model)
    assert torch.equal(embed(pickle.loads(pickle.dumps(model.bilm)), model), wanted)
    assert torch.equal(embed(deepcopy(model.bilm), model), wanted)


def test_f32_packed_is_the_network_itself(kernel, model):
    difference = embed(freeze(model.bilm), model) - embed(model.bilm, model)
    assert difference.abs().max() < 2e-6


@pytest.mark.parametrize("precision", WEIGHTS_IN_MEMORY)
def test_rounded_weights_stand_in_for_a_kernel(kernel, model, precision):
    packed = freeze(model.bilm, precision=precision)
    rounded = round_weights(deepcopy(model.bilm), precision)
    difference = embed(packed, model) - embed(rounded, model)
    assert difference.abs().max() < close(precision)


def test_a_later_change_does_not_reach_a_packed_copy(kernel, model):
    packed = freeze(model.bilm)
    before = embed(packed, model)
    with torch.no_grad():
        for weight in model.bilm.parameters():
            weight.add_(1)
    assert torch.equal(embed(packed, model), before)


def test_weights_packed_for_another_kernel_are_refused(kernel):
    packed = freeze(CASE.build())
    with variants.using("torch"), pytest.raises(ConfigError, match="packed for the kernel"):
        lstms.read(packed, CASE)


def test_a_narrow_precision_takes_less_memory(kernel):
    weight = torch.randn(512, 256)
    sizes = [PackedMatrix(kernel, weight, precision=p).num_bytes for p in WEIGHTS_IN_MEMORY]
    assert sizes[0] == 512 * 256 * 4
    assert sizes[1] == sizes[0] // 2
    assert sizes[2] == sizes[0] // 4 + 512 * 2 * 4


@pytest.mark.parametrize("shape", [(7, 5), (33, 70)])
def test_matrices_that_are_joined_have_the_bits_of_those_packed_together(kernel, shape):
    parts = [torch.randn(shape) for _ in range(3)]
    for precision in WEIGHTS_IN_MEMORY:
        wanted = PackedMatrix(kernel, torch.cat(parts), precision=precision, num_parts=3)
        found = PackedMatrix.join(
            [PackedMatrix(kernel, part, precision=precision) for part in parts]
        )
        np.testing.assert_array_equal(found.panels, wanted.panels)
        # Corrections are integers, some of which would be NaN as floats.
        np.testing.assert_array_equal(found.scales.view("u4"), wanted.scales.view("u4"))
        assert (found.num_inputs, found.num_panels) == (wanted.num_inputs, wanted.num_panels)


def test_where_a_weight_stands_in_memory_does_not_matter(kernel):
    """A weight may be a transposed, sliced or oddly placed view of another tensor."""
    weight = torch.randn(7, 5)
    strange = [
        weight.t().contiguous().t(),
        torch.cat([weight, weight], dim=1)[:, :5],
        torch.cat([torch.zeros(1), weight.flatten()])[1:].view(7, 5),
        weight.repeat_interleave(2, dim=1)[:, ::2],
    ]
    for precision in WEIGHTS_IN_MEMORY:
        wanted = PackedMatrix(kernel, weight, precision=precision)
        for view in strange:
            found = PackedMatrix(kernel, view, precision=precision)
            np.testing.assert_array_equal(found.panels, wanted.panels)
            np.testing.assert_array_equal(found.scales, wanted.scales)


def test_a_bias_stands_where_its_outputs_do():
    numbers = torch.arange(1.0, 7.0)
    found = interleave_numbers(numbers, num_parts=2, panel=2)
    assert found.tolist() == [1, 2, 4, 5, 3, 0, 6, 0]


# Weights that f16 holds exactly are packed in half the space.


def all_f16_numbers() -> torch.Tensor:
    """Return every finite number of f16, subnormal ones included: (64, 992)."""
    numbers = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(torch.float16).float()
    return numbers[numbers.isfinite()].view(64, -1)


def test_every_f16_number_is_kept(kernel):
    weight = all_f16_numbers()
    layer = PackedLinear(kernel, weight, torch.zeros(64), precision=Precision.F32)
    assert layer.precision is Precision.F16
    assert layer.matrix.num_bytes == 64 * 992 * 2
    assert torch.equal(layer.apply(torch.eye(992)), weight.t())


@pytest.mark.parametrize("number", [1 / 3, 1e5, 2.0**-25, 1 + 2.0**-11, float("nan")])
def test_a_weight_that_f16_would_change_is_kept_in_f32(number):
    weight = torch.ones(300, 2)
    assert narrow(Precision.F32, weight) is Precision.F16
    weight[299, 1] = number
    assert narrow(Precision.F32, torch.ones(1, 1), weight) is Precision.F32


@pytest.mark.parametrize("precision", [Precision.BF16, Precision.INT8])
def test_a_chosen_precision_is_not_replaced(precision):
    assert narrow(precision, torch.ones(1, 1)) is precision


@pytest.mark.parametrize("num_sentences", [1, 5, 30])
def test_f16_weights_give_the_bits_of_f32(kernel, monkeypatch, num_sentences):
    case = Case(lengths=tuple(range(1, 1 + num_sentences)), output_dim=33, cell_dim=70)
    bilm = case.build()
    with torch.no_grad():
        for lstm in [bilm.forward_lm[0], bilm.backward_lm[1]]:  # the others stay in f32
            for weight in lstm.parameters():
                weight.copy_(weight.half())
    found = freeze(bilm)
    precisions = [[layer.precision for layer in layers] for layers in found._lstms.directions]
    assert precisions == [[Precision.F16, Precision.F32], [Precision.F32, Precision.F16]]
    monkeypatch.setattr(reading, "narrow", lambda precision, *_: precision)
    wanted = lstms.read(freeze(bilm), case)
    assert torch.equal(lstms.read(found, case).layers, wanted.layers)


# A network keeps a packed copy of itself between calls.


def fused_step(bilm):
    optimizer = torch.optim.Adam(bilm.parameters(), lr=0.1, fused=True)
    with torch.enable_grad():
        bilm.contextualize(CASE.tokens(), torch.tensor(CASE.lengths)).layers.sum().backward()
    optimizer.step()


def step(bilm):
    optimizer = torch.optim.SGD(bilm.parameters(), lr=0.1)
    with torch.enable_grad():
        bilm.contextualize(CASE.tokens(), torch.tensor(CASE.lengths)).layers.sum().backward()
    optimizer.step()


def load_other(bilm):
    bilm.load_state_dict(Case(**{**CASE.__dict__, "seed": 5}).build().state_dict())


def assign_other(bilm):
    other = Case(**{**CASE.__dict__, "seed": 5}).build().state_dict()
    bilm.load_state_dict(other, assign=True)


def replace_a_parameter(bilm):
    lstm = bilm.backward_lm[1]
    lstm.bias = torch.nn.Parameter(lstm.bias.detach() + 1)


def write_by_numpy(bilm):
    array = bilm.forward_lm[0].input_weight.detach().numpy()
    array *= 0.5


def apply_in_inference_mode(bilm):
    with torch.inference_mode():
        bilm.forward_lm[1].state_weight.mul_(0.5)


CHANGES = {
    "optimizer step": step,
    "fused optimizer step": fused_step,
    "load_state_dict": load_other,
    "load_state_dict by assignment": assign_other,
    "copy_": lambda bilm: bilm.forward_lm[0].projection_weight.copy_(torch.ones(17, 33)),
    "one number": lambda bilm: bilm.forward_lm[0].projection_weight[16, 31].fill_(3.0),
    "fill_ of .data": lambda bilm: bilm.backward_lm[0].state_weight.data.fill_(0.1),
    "other .data": lambda bilm: setattr(bilm.forward_lm[0].bias, "data", torch.ones(132)),
    "another parameter": replace_a_parameter,
    "numpy": write_by_numpy,
    "inference mode": apply_in_inference_mode,
    "a moved average": lambda bilm: torch._foreach_lerp_(
        list(bilm.parameters()), [torch.ones_like(w) for w in bilm.parameters()], 0.1
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_weight_is_read_at_once(kernel, name):
    bilm = CASE.build()
    before = lstms.read(bilm, CASE).layers
    with torch.no_grad():
        CHANGES[name](bilm)
    after = lstms.read(bilm, CASE).layers
    assert not torch.equal(after, before)
    assert torch.equal(after, lstms.read(freeze(bilm), CASE).layers)
    assert torch.equal(lstms.read(bilm, CASE).layers, after)


@pytest.mark.parametrize("name", ["cell_clip", "output_clip", "forget_bias", "has_residuals"])
def test_a_changed_setting_is_read_at_once(kernel, name):
    bilm = CASE.build()
    before = lstms.read(bilm, CASE).layers
    if name == "has_residuals":
        bilm.has_residuals = False
    else:
        setattr(bilm.forward_lm[1], name, 0.07)
    after = lstms.read(bilm, CASE).layers
    assert not torch.equal(after, before)
    assert torch.equal(after, lstms.read(freeze(bilm), CASE).layers)
