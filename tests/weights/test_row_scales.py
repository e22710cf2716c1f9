"""int8 with one scale per row: the nearest multiples, read back exactly, and stable."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from elmore.weights.row_scales import quantize_rows, restore_rows


def make_matrix(*, num_rows: int = 200, seed: int = 0) -> torch.Tensor:
    """Rows of very different lengths."""
    numbers = np.random.default_rng(seed)
    lengths = 10.0 ** numbers.uniform(-20, 20, (num_rows, 1))
    return torch.from_numpy((numbers.normal(size=(num_rows, 33)) * lengths).astype(np.float32))


def test_no_number_is_off_by_more_than_half_a_step_of_its_row():
    matrix = make_matrix()
    integers, scales = quantize_rows(matrix)
    assert (integers.dtype, scales.dtype) == (torch.int8, torch.float32)
    off = (restore_rows(integers, scales).double() - matrix.double()).abs()
    assert bool((off <= 0.5 * scales.double()[:, None]).all())
    # A step is no larger than the 127 steps to the largest number of the row make it.
    needed = matrix.double().abs().amax(dim=1) / 127
    assert bool((scales.double() >= needed * (1 - 2**-23)).all())
    assert bool((scales.double() <= needed * (1 + 2**-15)).all())


def test_reading_is_exact_arithmetic():
    integers, scales = quantize_rows(make_matrix(num_rows=20))
    restored = restore_rows(integers, scales)
    for row, scale in enumerate(scales.tolist()):
        for column, integer in enumerate(integers[row].tolist()):
            assert Fraction(restored[row, column].item()) == Fraction(scale) * integer


def test_what_was_read_is_stored_in_the_same_bytes_again():
    once = quantize_rows(make_matrix())
    twice = quantize_rows(restore_rows(*once))
    assert torch.equal(once[0], twice[0])
    assert torch.equal(once[1], twice[1])


@pytest.mark.parametrize("number", [0.0, -0.0])
def test_rows_of_zeros_stay_zeros(number):
    integers, scales = quantize_rows(torch.full((2, 3), number))
    assert not restore_rows(integers, scales).any()


def test_the_largest_number_of_a_row_uses_the_whole_range():
    integers, _ = quantize_rows(make_matrix())
    assert integers.abs().amax(dim=1).eq(127).all()
