"""`tanh` and `sigmoid` of native/lanes.h, seen through the smallest layers that apply them."""

import numpy as np
import pytest
import torch

from elmore.config import Precision
from elmore.kernels.library import find_kernel
from elmore.kernels.tokens import PackedHighway
from elmore.model.packed_bilm import freeze
from tests import reference
from tests.kernels import variants
from tests.kernels.lstms import Case

INFINITY = float("inf")


@pytest.fixture(params=variants.NATIVE, scope="module")
def kernel(request):
    with variants.using(request.param):
        yield find_kernel()


def some_numbers() -> torch.Tensor:
    """Return numbers of every size and both signs, dense where the functions bend."""
    sizes = np.concatenate([np.logspace(-44, 38, 800), np.linspace(0, 20, 3001), [INFINITY]])
    return torch.from_numpy(np.concatenate([sizes, -sizes]).astype(np.float32))


def tanh_by_lstm(numbers: torch.Tensor) -> np.ndarray:
    """Read each number as a sentence: with all gates open, the cell is its tanh."""
    case = Case(lengths=(1,), output_dim=1, cell_dim=1, num_layers=1, has_projection=False)
    bilm = case.build()
    for lstm in (*bilm.forward_lm, *bilm.backward_lm):
        lstm.cell_clip = None
        with torch.no_grad():
            lstm.input_weight.copy_(torch.tensor([[0.0], [0.0], [1.0], [0.0]]))
            lstm.state_weight.zero_()
            lstm.bias.copy_(torch.tensor([100.0, 100.0, 0.0, 100.0]))
    lengths = torch.ones(len(numbers), dtype=torch.int64)
    return freeze(bilm).contextualize(numbers[:, None], lengths).state.cell[0, 0, :, 0].numpy()


def sigmoid_by_highway(kernel, numbers: torch.Tensor) -> np.ndarray:
    """Let each number open the gate between 0, which comes in, and 1, the transform's bias."""
    highway = PackedHighway(
        kernel,
        transform=(torch.zeros(2, 2), torch.ones(2)),
        gate=(torch.tensor([[0.0, 0.0], [1.0, 0.0]]), torch.zeros(2)),
        precision=Precision.F32,
    )
    return highway.apply(torch.stack([numbers, torch.zeros_like(numbers)], dim=1))[:, 1].numpy()


@pytest.mark.slow
def test_tanh_is_right_to_three_units_in_the_last_place(kernel):
    # All gates see 0 * inf, which is no number: infinity itself is for the next test.
    numbers = some_numbers()[some_numbers().isfinite()]
    wanted = np.tanh(numbers.double().numpy())
    found = tanh_by_lstm(numbers)
    unit = np.spacing(np.abs(wanted).astype(np.float32))
    assert (np.abs(found - wanted) / unit).max() < 3
    assert np.abs(found).max() == 1


def test_sigmoid_is_right_to_a_unit_in_the_last_place_of_one(kernel):
    numbers = some_numbers()[some_numbers().isfinite()]
    found = sigmoid_by_highway(kernel, numbers)
    assert np.abs(found - reference.sigmoid(numbers.double().numpy())).max() < 2**-23
    assert found.min() >= 0
    assert found.max() == 1


def test_both_rise(kernel):
    numbers = torch.linspace(-12, 12, 20_001)
    for found in (tanh_by_lstm(numbers), sigmoid_by_highway(kernel, numbers)):
        assert (np.diff(found) >= -(2**-23)).all()


def test_what_is_not_a_number_stays_so(kernel):
    numbers = torch.tensor([float("nan"), 1.0])
    for found in (tanh_by_lstm(numbers), sigmoid_by_highway(kernel, numbers)):
        assert np.isnan(found).tolist() == [True, False]


def test_an_infinite_sum_gives_the_limit(kernel):
    """1e38 times 1e38 reaches the gate as infinity."""
    highway = PackedHighway(
        kernel,
        transform=(torch.zeros(2, 2), torch.ones(2)),
        gate=(torch.tensor([[0.0, 0.0], [1e38, 0.0]]), torch.zeros(2)),
        precision=Precision.F32,
    )
    found = highway.apply(torch.tensor([[1e38, 0.0], [-1e38, 0.0]]))
    assert found[:, 1].tolist() == [1.0, 0.0]
