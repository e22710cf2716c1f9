"""Packed LSTMs give the numbers of the formulas, in every variant, precision and shape.

Error bounds. A sum of n products in single precision is off by n * 2^-24 times their sizes at most:
for the widths here, some 1e-5, and far less since errors cancel; 7e-7 was measured. Rounded weights
cost no more than that once the oracle has them too. Where a kernel also rounds the inputs of a
product to whole steps, an input that lies between two may go either way: an error of one step times
a weight, which later tokens inherit; 7e-4 was measured with steps of a 2048th.
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from elmore.config import WEIGHTS_IN_MEMORY, Precision
from elmore.kernels import reading
from elmore.kernels.library import find_kernel
from elmore.model.packed_bilm import freeze
from elmore.model.state import BiLMState
from tests.kernels import lstms, variants
from tests.kernels.lstms import Case, expected, largest_error, read

EXACT = 2e-6
# Against the formulas with the weights as they were: what a precision costs. In 2000 cases it was
# 0.015 and 0.045 at most, for vectors of size 1.
COST = {Precision.F32: EXACT, Precision.BF16: 0.04, Precision.INT8: 0.1}


@pytest.fixture(params=variants.ALL, scope="module")
def variant(request):
    with variants.using(request.param) as name:
        yield name


def bound(precision: Precision) -> float:
    """Return how far a variant may be from the formulas with weights and inputs rounded."""
    rounding = lstms.rounding_of_inputs(precision)
    if rounding is lstms.keep:
        return EXACT
    if rounding is lstms.round_to_bf16 or lstms.input_limit(1) == 127:
        return 0.03  # steps of a 128th
    return 3e-3  # steps of a 2048th


def assert_right(case: Case, precision: Precision) -> None:
    bilm = case.build()
    found = read(freeze(bilm, precision=precision), case)
    assert largest_error(found, expected(case, bilm, precision)) < bound(precision)


@pytest.mark.slow
@pytest.mark.parametrize("precision", WEIGHTS_IN_MEMORY)
@settings(max_examples=15, deadline=None)
@given(lstms.cases())
def test_every_layer_and_state_is_that_of_the_formulas(variant, precision, case):
    assert_right(case, precision)


LARGE_CASES = {
    "one token": Case(lengths=(1,)),
    "one long sentence": Case(lengths=(1000,), num_layers=1, has_state=False),
    "many sentences": Case(lengths=tuple(1 + n * 7 % 5 for n in range(257)), num_layers=1),
    "one number a token": Case(lengths=(3, 1), output_dim=1, cell_dim=1),
    # Wider than a kernel reads at once; more tokens than it keeps the input gates of.
    "many cells": Case(lengths=tuple(range(1, 50)), output_dim=3, cell_dim=1030, num_layers=1),
    "wide tokens": Case(
        lengths=(2, 1, 3), output_dim=545, cell_dim=545, has_projection=False, num_layers=1
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("precision", WEIGHTS_IN_MEMORY)
@pytest.mark.parametrize("name", LARGE_CASES)
def test_no_size_is_too_small_or_too_large(variant, precision, name):
    assert_right(LARGE_CASES[name], precision)


@pytest.mark.parametrize("precision", WEIGHTS_IN_MEMORY)
@settings(max_examples=10, deadline=None)
@given(case=lstms.cases())
def test_a_precision_costs_what_it_may(variant, precision, case):
    bilm = case.build()
    found = read(freeze(bilm, precision=precision), case)
    has_bytes = lstms.input_limit(1) == 127 and precision is Precision.INT8
    assert largest_error(found, expected(case, bilm)) < COST[precision] * (2 if has_bytes else 1)


def test_tight_clips_are_reached():
    """Otherwise the cases above would say nothing about them."""
    case = Case(lengths=(4, 3))
    _, hidden, cell = expected(case, case.build())
    assert (np.abs(hidden) == case.output_clip).any()
    assert (np.abs(cell) == case.cell_clip).any()


# A row's bits are its own.


@pytest.mark.slow
@pytest.mark.parametrize("precision", WEIGHTS_IN_MEMORY)
@settings(max_examples=8, deadline=None)
@given(case=lstms.cases(max_sentences=12, max_length=20))
def test_batch_mates_change_no_bit(variant, precision, case):
    reader = freeze(case.build(), precision=precision)
    assert_same_alone(reader, case, range(len(case.lengths)))


@pytest.mark.parametrize("precision", WEIGHTS_IN_MEMORY)
def test_many_batch_mates_change_no_bit(variant, precision):
    case = Case(lengths=tuple(1 + n % 3 for n in range(257)), output_dim=17, cell_dim=33)
    assert_same_alone(freeze(case.build(), precision=precision), case, range(0, 257, 16))


def assert_same_alone(reader, case, sentences):
    """Read some of the sentences alone and compare."""
    together = read(reader, case)
    state = case.state()
    layers = together.layers.split(list(case.lengths), dim=1)
    for sentence in sentences:
        row = slice(sentence, sentence + 1)
        alone = reader.contextualize(
            lstms.part_of(case.tokens(), case.lengths, sentence),
            torch.tensor(case.lengths[row]),
            None if state is None else state[row],
        )
        assert torch.equal(alone.layers, layers[sentence])
        assert torch.equal(alone.state.hidden, together.state[row].hidden)
        assert torch.equal(alone.state.cell, together.state[row].cell)


@pytest.mark.slow
@pytest.mark.parametrize("precision", WEIGHTS_IN_MEMORY)
@pytest.mark.parametrize("num_distinct", [1, 7, 70])
def test_repeated_tokens_have_the_bits_of_tokens_read_alone(variant, precision, num_distinct):
    """Layer 1 multiplies equal tokens once; 70 of 100 are too many to make use of it."""
    case = Case(lengths=(20, 31, 9, 40), output_dim=33, cell_dim=40)
    kinds = case.tokens()[:num_distinct]
    kinds[-1] = kinds[0]
    kinds[-1, 11] = -kinds[-1, 11]  # differs in one number
    tokens = kinds[torch.arange(100) * 7 % num_distinct]
    bilm, state = freeze(case.build(), precision=precision), case.state()
    found = read(bilm, case, tokens, state).layers.split(case.lengths, dim=1)
    for sentence, layers in enumerate(found):
        part = lstms.part_of(tokens, case.lengths, sentence)
        alone = read(bilm, case.only(sentence), part, state[[sentence]])
        assert torch.equal(alone.layers, layers)


@pytest.mark.slow
@pytest.mark.parametrize("precision", WEIGHTS_IN_MEMORY)
def test_threads_change_no_bit(variant, precision, monkeypatch):
    monkeypatch.setattr(reading, "MIN_TEAM_BYTES", 0)  # small weights, and still a team
    cases = [
        Case(lengths=(300,), output_dim=130, cell_dim=130),  # time for threads to lose each other
        Case(lengths=(7, 4), output_dim=33, cell_dim=70),
        Case(lengths=(6, 1), output_dim=33, cell_dim=33, has_projection=False),
        Case(lengths=(6, 1, 3, 8, 2, 2), output_dim=33, cell_dim=70),
    ]
    for case in cases if find_kernel() else cases[1:]:  # torch has no teams
        reader = freeze(case.build(), precision=precision)
        before = torch.get_num_threads()
        found = []
        try:
            for num_threads in (1, 2, 4, 7):
                torch.set_num_threads(num_threads)
                found.append(read(reader, case))
        finally:
            torch.set_num_threads(before)
        for output in found[1:]:
            assert torch.equal(output.layers, found[0].layers)
            assert torch.equal(output.state.hidden, found[0].state.hidden)
            assert torch.equal(output.state.cell, found[0].state.cell)


@pytest.mark.slow
def test_variants_of_eight_and_sixteen_lanes_agree_to_the_bit():
    """Each output is one sum in the order of its inputs, however many lanes there are."""
    case = Case(lengths=(5, 9, 2), output_dim=33, cell_dim=70)
    found = []
    for name in ("avx2", "wide"):
        with variants.using(name):
            for precision in WEIGHTS_IN_MEMORY:
                packed = freeze(case.build(), precision=precision)
                found.append(read(packed, case).layers)
    for eight, sixteen in zip(found[:3], found[3:], strict=True):
        assert torch.equal(eight, sixteen)


# What no sentence should contain.


@pytest.mark.parametrize("precision", WEIGHTS_IN_MEMORY)
@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 3e38, 1e-45])
def test_a_strange_number_stays_in_its_sentence(variant, precision, number):
    case = Case(lengths=(4, 6, 3, 1), output_dim=17, cell_dim=20, cell_clip=None, output_clip=None)
    reader = freeze(case.build(), precision=precision)
    tokens = case.tokens()
    tokens[5, 16] = number  # the second token of the second sentence, in a last odd place
    strange = read(reader, case, tokens)
    usual = read(reader, case)
    others = [0, 1, 2, 3, *range(10, 14)]
    assert torch.equal(strange.layers[:, others], usual.layers[:, others])
    assert torch.equal(strange.state.hidden[:, :, [0, 2, 3]], usual.state.hidden[:, :, [0, 2, 3]])
    half = strange.layers.shape[2] // 2
    if np.isnan(number):
        # Whoever reads it knows nothing any more; whoever does not is as before.
        assert strange.layers[1:, 5:10, :half].isnan().all()
        assert strange.layers[1:, 4:6, half:].isnan().all()
        assert torch.equal(strange.layers[:, 4, :half], usual.layers[:, 4, :half])
        assert torch.equal(strange.layers[:, 6:10, half:], usual.layers[:, 6:10, half:])
    elif precision is Precision.F32:
        assert not strange.layers[:, 4, :half].isnan().any()


@pytest.mark.parametrize("precision", WEIGHTS_IN_MEMORY)
def test_a_weight_that_is_not_a_number_is_not_overlooked(variant, precision):
    case = Case(lengths=(2,), num_layers=1)
    bilm = case.build()
    with torch.no_grad():
        bilm.forward_lm[0].projection_weight[2, 1] = float("nan")
    layers = read(freeze(bilm, precision=precision), case).layers[1]
    assert layers[:, 2].isnan().all()
    assert not layers[0, [0, 1, 3, 4]].isnan().any()
    assert not layers[:, 5:].isnan().any()


def test_zero_weights_and_zero_tokens_give_zero(variant):
    case = Case(lengths=(2, 1), has_state=False)
    bilm = case.build()
    with torch.no_grad():
        for weight in bilm.parameters():
            weight.zero_()
    for precision in WEIGHTS_IN_MEMORY:
        reader = freeze(bilm, precision=precision)
        assert not read(reader, case, torch.zeros(3, 5)).layers.any()
        assert not read(reader, case).layers[1:].any()


def test_wrong_shapes_and_types_are_refused_before_native_code_reads_them(variant):
    if find_kernel() is None:
        pytest.skip("torch has its own checks")
    case = Case(lengths=(2, 1))
    bilm = case.build()
    tokens, state = case.tokens(), case.state()
    assert state is not None
    narrow = BiLMState(hidden=state.hidden, cell=state.cell[..., :-1])
    double = BiLMState(hidden=state.hidden.double(), cell=state.cell)
    for reader in (freeze(bilm), bilm, case.build().requires_grad_(requires_grad=False)):
        for wrong_tokens, wrong_state, lengths in [
            (tokens[:, :4], state, [2, 1]),
            (tokens[:2], state, [2, 1]),
            (tokens, narrow, [2, 1]),
            (tokens, double, [2, 1]),
            (tokens, state, [3, 0]),
        ]:
            with pytest.raises((ValueError, IndexError)):
                reader.contextualize(wrong_tokens, torch.tensor(lengths), wrong_state)
    with pytest.raises(ValueError, match=r"expected tokens of shape \[3, 5\] in float32"):
        freeze(bilm).contextualize(tokens.half(), torch.tensor([2, 1]), state)
