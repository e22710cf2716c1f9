"""Linear and highway layers, and filters by table, give what numpy computes.

Shapes: U tokens, C characters, S units of a table, F filters, w their width.
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmore.config import WEIGHTS_IN_MEMORY, Precision
from elmore.kernels import tokens
from elmore.kernels.library import find_kernel
from elmore.kernels.tokens import PackedHighway, PackedLinear, find_strongest, scatter_gradient
from tests import reference
from tests.kernels import lstms, variants

NUM_ROWS = st.sampled_from([0, 1, 2, 5, 6, 7, 31, 32, 97])
DIMS = st.sampled_from([1, 2, 3, 5, 15, 16, 17, 31, 33, 600])


@pytest.fixture(params=variants.NATIVE, scope="module")
def kernel(request):
    with variants.using(request.param):
        yield find_kernel()


def draw_floats(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def multiply_as_kernels_do(x: torch.Tensor, weight: torch.Tensor, precision: Precision):
    """Return (U, O) in double precision, inputs and weights rounded first."""
    rounding = lstms.rounding_of_inputs(precision)
    rows = [rounding(row) for row in x.double().numpy()]
    rounded = lstms.round_weight(weight, precision)
    return np.array([rounded @ row for row in rows]).reshape(len(x), len(weight))


def bound(num_inputs: int, precision: Precision) -> float:
    """Return what n roundings of sums of size sqrt(n) may add up to, with some room.

    To that comes a step of the inputs, where an input lay between two and went the other way.
    """
    error = 1e-6 * (num_inputs + 3)
    rounding = lstms.rounding_of_inputs(precision)
    if rounding is lstms.round_to_whole:
        error += 20 / lstms.input_limit(num_inputs)
    elif rounding is lstms.round_to_bf16:
        error += 20 / 256
    return error


@pytest.mark.parametrize("precision", WEIGHTS_IN_MEMORY)
@settings(max_examples=25, deadline=None)
@given(num_rows=NUM_ROWS, num_inputs=DIMS, num_outputs=DIMS, seed=st.integers(0, 99))
def test_a_linear_layer_is_a_product_and_a_bias(
    kernel, precision, num_rows, num_inputs, num_outputs, seed
):
    x, weight = draw_floats(seed, num_rows, num_inputs), draw_floats(7, num_outputs, num_inputs)
    bias = draw_floats(8, num_outputs)
    found = PackedLinear(kernel, weight, bias, precision=precision).apply(x).numpy()
    wanted = multiply_as_kernels_do(x, weight, precision) + bias.numpy()
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=bound(num_inputs, precision))


@settings(max_examples=25, deadline=None)
@given(num_rows=NUM_ROWS, num_inputs=DIMS, num_outputs=DIMS, seed=st.integers(0, 99))
def test_int8_is_whole_numbers_to_the_bit(kernel, num_rows, num_inputs, num_outputs, seed):
    """All but four roundings of a product are exact, and those are known."""
    x, weight = draw_floats(seed, num_rows, num_inputs), draw_floats(7, num_outputs, num_inputs)
    linear = PackedLinear(kernel, weight, torch.zeros(num_outputs), precision=Precision.INT8)
    found = linear.apply(x).numpy()
    x, weight = x.numpy(), weight.numpy()  # torch divides by multiplying with an inverse
    scale = np.abs(weight).max(axis=1, keepdims=True) / np.float32(127)
    whole_weight = np.rint(weight / scale).astype(np.int64)
    limit = np.float32(lstms.input_limit(num_inputs))
    offset = 128 if limit == 127 else 0  # bytes without a sign
    most = np.abs(x).max(axis=1, keepdims=True)
    whole_x = np.rint(x * (limit / most)).astype(np.int64)
    sums = ((whole_x + offset) @ whole_weight.T).astype(np.float32)
    wanted = sums - (whole_weight.sum(axis=1) * offset).astype(np.float32)
    np.testing.assert_array_equal(found, wanted * scale.T * (most / limit))


@pytest.mark.parametrize("precision", WEIGHTS_IN_MEMORY)
@settings(max_examples=25, deadline=None)
@given(num_rows=NUM_ROWS, dim=DIMS, seed=st.integers(0, 99))
def test_a_highway_layer_is_its_formula(kernel, precision, num_rows, dim, seed):
    x = draw_floats(seed, num_rows, dim)
    transform = draw_floats(1, dim, dim) / dim**0.5, draw_floats(2, dim)
    gate = draw_floats(3, dim, dim) / dim**0.5, draw_floats(4, dim)
    highway = PackedHighway(kernel, transform=transform, gate=gate, precision=precision)
    transformed, opened = (
        multiply_as_kernels_do(x, weight, precision) + bias.numpy()
        for weight, bias in (transform, gate)
    )
    opened = reference.sigmoid(opened)
    wanted = opened * np.maximum(transformed, 0) + (1 - opened) * x.numpy()
    found = highway.apply(x).numpy()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2 * bound(dim, precision))


@pytest.mark.parametrize("precision", WEIGHTS_IN_MEMORY)
def test_a_row_is_the_same_in_any_batch_and_any_number_of_threads(kernel, precision):
    x = draw_floats(0, 150, 33)
    weights = draw_floats(1, 33, 33), draw_floats(2, 33)
    linear = PackedLinear(kernel, *weights, precision=precision)
    highway = PackedHighway(kernel, transform=weights, gate=weights, precision=precision)
    for layer in (linear, highway):
        wanted = torch.cat([layer.apply(row) for row in x.split(1)])
        before = torch.get_num_threads()
        try:
            for num_threads in (1, 2, 4):
                torch.set_num_threads(num_threads)
                assert torch.equal(layer.apply(x), wanted)
                assert torch.equal(layer.apply(x[::7]), wanted[::7])  # rows that stand apart
        finally:
            torch.set_num_threads(before)


@pytest.mark.parametrize("precision", WEIGHTS_IN_MEMORY)
@pytest.mark.parametrize("number", [float("nan"), float("inf"), 3e38])
def test_a_strange_number_stays_in_its_row(kernel, precision, number):
    x = draw_floats(0, 9, 20)
    strange = x.clone()
    strange[4, 19] = number
    weights = draw_floats(1, 20, 20), draw_floats(2, 20)
    linear = PackedLinear(kernel, *weights, precision=precision)
    highway = PackedHighway(kernel, transform=weights, gate=weights, precision=precision)
    others = [0, 1, 2, 3, 5, 6, 7, 8]
    for layer in (linear, highway):
        assert torch.equal(layer.apply(strange)[others], layer.apply(x)[others])
        if np.isnan(number):
            assert layer.apply(strange)[4].isnan().all()


def test_wrong_shapes_and_types_are_refused_before_native_code_reads_them(kernel):
    weights = draw_floats(1, 5, 5), draw_floats(2, 5)
    linear = PackedLinear(kernel, *weights, precision=Precision.F32)
    highway = PackedHighway(kernel, transform=weights, gate=weights, precision=Precision.F32)
    for layer in (linear, highway):
        with pytest.raises(ValueError, match=r"expected vectors of shape \[3, 5\]"):
            layer.apply(torch.zeros(3, 4))
        with pytest.raises(ValueError, match=r"got \[3, 5\] in torch.float16"):
            layer.apply(torch.zeros(3, 5).half())


# Filters by table.


@st.composite
def spellings(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Draw (U, C) units, (U,) positions and (w, S, F) tables, of numbers that make ties."""
    max_chars = draw(st.integers(1, 12))
    num_tokens, num_units = draw(st.integers(0, 40)), draw(st.integers(1, 9))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    tables = []
    for width in draw(st.lists(st.integers(1, max_chars), min_size=1, max_size=3)):
        num_filters = draw(st.sampled_from([1, 7, 8, 15, 16, 17, 33, 70, 128]))
        table = random.integers(-4, 5, (width, num_units, num_filters)) / 4
        tables.append(table.astype(np.float32))
    units = random.integers(0, num_units, (num_tokens, max_chars))
    return units, random.integers(1, max_chars + 2, num_tokens), tables


def strongest_by_formula(units, positions, table):
    """Return (U, F) the strongest responses and the first window that gives each."""
    width, _, num_filters = table.shape
    strongest = np.empty((len(units), num_filters), np.float32)
    winners = np.empty((len(units), num_filters), np.int32)
    for token, ids in enumerate(units):
        num_windows = min(positions[token], len(ids) - width + 1)
        responses = [
            sum(table[place, ids[window + place]] for place in range(width))
            for window in range(num_windows)
        ]
        strongest[token] = np.max(responses, axis=0)
        winners[token] = np.argmax(responses, axis=0)
    return strongest, winners


@settings(max_examples=40, deadline=None)
@given(spelling=spellings(), with_winners=st.booleans())
def test_the_strongest_response_is_the_largest_sum(kernel, spelling, with_winners):
    units, positions, tables = spelling
    strongest, winners = find_strongest(
        kernel,
        torch.from_numpy(units),
        torch.from_numpy(positions),
        [torch.from_numpy(table) for table in tables],
        with_winners=with_winners,
    )
    wanted = [strongest_by_formula(units, positions, table) for table in tables]
    np.testing.assert_array_equal(
        strongest.numpy(), np.concatenate([responses for responses, _ in wanted], axis=1)
    )
    assert len(winners) == (len(tables) if with_winners else 0)
    for found, (_, first_windows) in zip(winners, wanted, strict=False):
        np.testing.assert_array_equal(found.numpy(), first_windows)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(spelling=spellings())
def test_a_gradient_goes_to_the_units_of_the_winning_window(kernel, spelling):
    units, positions, (table, *_) = spelling
    _, winners = strongest_by_formula(units, positions, table)
    gradient = draw_floats(0, *winners.shape)
    found = scatter_gradient(
        kernel,
        torch.from_numpy(units),
        torch.from_numpy(winners),
        gradient,
        torch.Size(table.shape),
    )
    wanted = np.zeros(table.shape)
    for token, filter_ in np.ndindex(*winners.shape):
        for place in range(len(table)):
            unit = units[token, winners[token, filter_] + place]
            wanted[place, unit, filter_] += gradient[token, filter_]
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-5)


def test_threads_change_no_response(kernel):
    units = torch.randint(9, (150, 7), generator=torch.Generator().manual_seed(0))
    positions = torch.arange(150) % 7 + 1
    tables = [draw_floats(width, width, 9, 37) for width in (1, 3)]
    before = torch.get_num_threads()
    found = []
    try:
        for num_threads in (1, 2, 4):
            torch.set_num_threads(num_threads)
            found.append(find_strongest(kernel, units, positions, tables)[0])
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found[1], found[0])
    assert torch.equal(found[2], found[0])


@pytest.mark.parametrize("num_filters", [3, 16, 70])
def test_a_unit_that_is_not_a_number_is_not_overlooked(kernel, num_filters):
    table = torch.zeros(2, 3, num_filters)
    table[0, 1] = float("nan")
    units = torch.tensor([[0, 2, 1, 2, 0], [0, 2, 2, 2, 0]])
    strongest, (winners,) = find_strongest(
        kernel, units, torch.tensor([4, 4]), [table], with_winners=True
    )
    assert strongest[0].isnan().all()
    assert winners[0].eq(2).all()
    assert not strongest[1].any()


@pytest.mark.parametrize("precision", WEIGHTS_IN_MEMORY)
@pytest.mark.parametrize("num_rows", [1, 5, 20])
@pytest.mark.parametrize("dim", [17, 70, 600])
def test_threads_that_share_outputs_change_no_bit(kernel, monkeypatch, precision, num_rows, dim):
    x, weight, bias = draw_floats(1, num_rows, dim), draw_floats(2, dim, dim), draw_floats(3, dim)
    layers = [
        PackedLinear(kernel, weight, bias, precision=precision),
        PackedHighway(
            kernel, transform=(weight, bias), gate=(weight.flip(0), bias), precision=precision
        ),
    ]
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = [layer.apply(x) for layer in layers]
        monkeypatch.setattr(tokens, "MIN_PRODUCTS", 0)
        torch.set_num_threads(3)
        together = [layer.apply(x) for layer in layers]
    finally:
        torch.set_num_threads(before)
    assert all(map(torch.equal, alone, together))
