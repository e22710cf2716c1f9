"""The way through a layer and back: the forward bits of reading, the gradients of autograd.

Gradients are compared with those that autograd finds through torch's own operations in double
precision. Examples are the same in every run: a sum that single precision sees within its clip and
double precision sees outside has two right gradients, which random ones would find some day.
"""

from copy import deepcopy

import pytest
import torch
from hypothesis import given, settings

from elmore.kernels import products
from elmore.model.bilm import BiLM, BiLMOutput
from elmore.model.packed_bilm import freeze
from elmore.model.state import BiLMState
from tests.kernels import lstms, variants
from tests.kernels.lstms import Case

CLOSE = 1e-5  # of a tensor's largest gradient


@pytest.fixture(params=variants.ALL, scope="module")
def variant(request):
    with variants.using(request.param) as name:
        yield name


def make_inputs(case: Case, dtype: torch.dtype) -> tuple[torch.Tensor, BiLMState]:
    """Return tokens and a state that want gradients."""
    state = case.state() or case.build().initial_state(len(case.lengths))
    tokens, hidden, cell = (
        tensor.clone().to(dtype).requires_grad_()
        for tensor in (case.tokens(), state.hidden, state.cell)
    )
    return tokens, BiLMState(hidden=hidden, cell=cell)


def loss_of(output: BiLMOutput) -> torch.Tensor:
    """Weigh all results, every number differently."""
    generator = torch.Generator().manual_seed(9)
    results = (output.layers, output.state.hidden, output.state.cell)
    return sum(
        (result * torch.randn(result.shape, generator=generator).to(result)).sum()
        for result in results
    )


def gradients(bilm: BiLM, case: Case, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    tokens, state = make_inputs(case, dtype)
    loss_of(bilm.contextualize(tokens, torch.tensor(case.lengths), state)).backward()
    wanted = {"tokens": tokens, "hidden": state.hidden, "cell": state.cell}
    wanted |= dict(bilm.named_parameters())
    return {name: tensor.grad.double() for name, tensor in wanted.items()}


def assert_right(case: Case) -> None:
    found = gradients(case.build(), case, torch.float32)
    wanted = gradients(case.build().double(), case, torch.float64)
    assert found.keys() == wanted.keys()
    for name, gradient in wanted.items():
        error = (found[name] - gradient).abs().max() / gradient.abs().max().clamp(min=1e-3)
        assert error < CLOSE, name


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(case=lstms.cases(max_sentences=5))
def test_every_gradient_is_that_of_autograd(variant, case):
    assert_right(case)


SIZES = {
    "one long sentence": Case(lengths=(200,), gain=0.7),
    "many sentences": Case(lengths=tuple(1 + n * 7 % 5 for n in range(257)), num_layers=1),
    "many cells": Case(lengths=tuple(range(1, 50)), output_dim=3, cell_dim=600, num_layers=1),
    "tight clips": Case(lengths=(6, 4), cell_clip=0.05, output_clip=0.02),
    "no clips": Case(lengths=(6, 4), cell_clip=None, output_clip=None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_no_size_is_too_small_or_too_large(variant, name):
    assert_right(SIZES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_the_kernels_own_products_give_these_gradients_too(variant, name, monkeypatch):
    """With AVX-512, they compute the gradients of large layers."""
    monkeypatch.setattr(products, "MIN_PRODUCTS", 0)
    assert_right(SIZES[name])


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(case=lstms.cases(max_sentences=9))
def test_forward_for_a_gradient_gives_the_bits_of_reading(variant, case):
    bilm = case.build()
    trained = bilm.contextualize(case.tokens(), torch.tensor(case.lengths), case.state())
    read = lstms.read(bilm, case)
    assert trained.layers.requires_grad
    assert not read.layers.requires_grad
    assert torch.equal(trained.layers, read.layers)
    assert torch.equal(trained.state.hidden, read.state.hidden)
    assert torch.equal(trained.state.cell, read.state.cell)
    packed = lstms.read(freeze(bilm), case)
    assert torch.equal(packed.layers, read.layers)


CASE = Case(lengths=(3, 5, 1))


def test_the_gradient_of_tokens_is_that_of_their_sentence_alone(variant):
    bilm = CASE.build()
    tokens, state = make_inputs(CASE, torch.float32)
    output = bilm.contextualize(tokens, torch.tensor(CASE.lengths), state)
    output.layers.square().sum().backward()
    alone = lstms.part_of(tokens, CASE.lengths, 1).detach().requires_grad_()
    bilm.contextualize(
        alone, torch.tensor([5]), state[1:2].detach()
    ).layers.square().sum().backward()
    torch.testing.assert_close(alone.grad, tokens.grad[3:8], atol=1e-6, rtol=1e-6)


def test_a_graph_can_be_walked_twice(variant):
    bilm = CASE.build()
    tokens, state = make_inputs(CASE, torch.float32)
    loss = loss_of(bilm.contextualize(tokens, torch.tensor(CASE.lengths), state))
    loss.backward(retain_graph=True)
    first = {name: weight.grad.clone() for name, weight in bilm.named_parameters()}
    once = tokens.grad.clone()
    loss.backward()
    assert torch.equal(tokens.grad, 2 * once)
    for name, weight in bilm.named_parameters():
        assert torch.equal(weight.grad, 2 * first[name]), name


def test_only_some_gradients_may_be_wanted(variant):
    everything = gradients(CASE.build(), CASE, torch.float32)
    bilm = CASE.build()
    for name, weight in bilm.named_parameters():
        weight.requires_grad_("state_weight" in name and "forward_lm.0" in name)
    loss_of(bilm.contextualize(CASE.tokens(), torch.tensor(CASE.lengths), CASE.state())).backward()
    wanted = "forward_lm.0.state_weight"
    found = {name: weight.grad for name, weight in bilm.named_parameters()}
    torch.testing.assert_close(found.pop(wanted).double(), everything[wanted])
    assert set(found.values()) == {None}


def test_frozen_weights_let_gradients_through_to_tokens(variant):
    everything = gradients(CASE.build(), CASE, torch.float32)
    bilm = CASE.build().requires_grad_(requires_grad=False)
    tokens = CASE.tokens().requires_grad_()
    loss_of(bilm.contextualize(tokens, torch.tensor(CASE.lengths), CASE.state())).backward()
    torch.testing.assert_close(tokens.grad.double(), everything["tokens"])


def test_one_direction_alone_gets_its_gradient(variant):
    bilm = CASE.build()
    tokens = CASE.tokens()
    output = bilm.contextualize(tokens, torch.tensor(CASE.lengths), CASE.state())
    output.layers[-1, :, 5:].sum().backward()
    for name, weight in bilm.named_parameters():
        touched = weight.grad is not None and bool(weight.grad.any())
        assert touched == name.startswith("backward_lm"), name


def test_the_final_state_alone_gives_a_gradient(variant):
    results = []
    for dtype in (torch.float32, torch.float64):
        tokens, state = make_inputs(CASE, dtype)
        output = CASE.build().to(dtype).contextualize(tokens, torch.tensor(CASE.lengths), state)
        output.state.cell[0, 1, 2].sum().backward()
        results.append([t.grad.double() for t in (tokens, state.hidden, state.cell)])
    for single, double in zip(*results, strict=True):
        torch.testing.assert_close(single, double, atol=1e-6, rtol=1e-5)


def test_state_carried_from_batch_to_batch_carries_gradients(variant):
    results = []
    for dtype in (torch.float32, torch.float64):
        bilm = CASE.build().to(dtype)
        tokens, state = make_inputs(CASE, dtype)
        lengths = torch.tensor(CASE.lengths)
        first = bilm.contextualize(tokens, lengths, state)
        loss_of(bilm.contextualize(tokens, lengths, first.state)).backward()
        results.append(tokens.grad.double())
    torch.testing.assert_close(*results, atol=1e-5, rtol=1e-5)


def test_a_copy_of_a_network_in_training_trains_alike(variant):
    bilm = CASE.build()
    found = gradients(deepcopy(bilm), CASE, torch.float32)
    wanted = gradients(bilm, CASE, torch.float32)
    for name, gradient in wanted.items():
        assert torch.equal(found[name], gradient), name


@pytest.mark.slow
def test_threads_change_no_bit_of_the_way_back_through_a_layer(variant):
    before = torch.get_num_threads()
    found = []
    try:
        for num_threads in (1, 2):
            torch.set_num_threads(num_threads)
            found.append(gradients(CASE.build(), CASE, torch.float32))
    finally:
        torch.set_num_threads(before)
    for name in ("hidden", "cell"):
        assert torch.equal(found[0][name], found[1][name]), name
    for name, gradient in found[0].items():  # products over all tokens are torch's
        torch.testing.assert_close(found[1][name], gradient, atol=1e-6, rtol=1e-6)
