"""A number depends on its key and its place, and on nothing else."""

import itertools

import numpy as np
import pytest
import torch

from elmore.model.random_numbers import draw_keep_mask, make_generator


def draw(*key, rows=64, columns=75, first_row=0, dropout=0.25):
    return draw_keep_mask(*key, shape=(rows, columns), first_row=first_row, dropout=dropout)


def test_one_key_always_gives_the_same_numbers():
    """Exactly these numbers: a run of an earlier version resumes with them."""
    numbers = make_generator(7, 3).bit_generator.random_raw(2)
    assert numbers.tolist() == [13990697868501522059, 4697943715476745970]
    parts = [number >> shift & 0xFFFF for number in numbers.tolist() for shift in (0, 16, 32, 48)]
    for threshold in (1 << 15, parts[0], parts[0] + 1):
        kept = [part >= threshold for part in parts]
        mask = draw(7, 3, rows=1, columns=8, dropout=threshold / (1 << 16))
        assert mask.bool().tolist() == [kept]


def test_every_key_has_numbers_of_its_own():
    keys = [(), (0,), (1,), (-1,), (1, 2), (2, 1), (12,), (1, 2, 0), (2**64 + 1,), (2**200,)]
    drawn = [make_generator(*key).random(500) for key in keys]
    for one, other in itertools.combinations(drawn, 2):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.2  # 4.5 standard errors


@pytest.mark.parametrize("columns", [1, 15, 16, 17, 75])
def test_rows_drawn_in_parts_are_the_same_rows(columns):
    whole = draw(5, rows=9, columns=columns, first_row=100)
    parts = [
        draw(5, rows=4, columns=columns, first_row=100),
        draw(5, rows=0, columns=columns, first_row=104),
        draw(5, rows=5, columns=columns, first_row=104),
    ]
    assert torch.equal(torch.cat(parts), whole)


def test_places_are_independent():
    """Neither neighbouring rows nor neighbouring columns, nor another key, repeat numbers."""
    mask = draw(5, rows=400, columns=400)
    moved = [draw(6, rows=400, columns=400)]
    moved += [mask.roll(shift, dims=dim) for shift in (1, 2, 4, 16, 100) for dim in (0, 1)]
    for other in moved:
        together = torch.stack([mask.flatten(), other.flatten()])
        assert abs(torch.corrcoef(together)[0, 1]) < 4.5 / 400


@pytest.mark.parametrize("dropout", [0.001, 0.1, 0.5, 0.9])
def test_the_share_dropped_is_the_one_asked_for_and_the_mean_is_one(dropout):
    mask = draw(5, rows=1000, columns=400, dropout=dropout)
    assert mask.dtype == torch.float32
    kept = mask[mask != 0]
    assert torch.equal(kept, torch.full_like(kept, kept[0].item()))
    rounded = round(dropout * 65536) / 65536
    assert kept[0].item() == pytest.approx(1 / (1 - rounded), rel=1e-6)
    error = (rounded * (1 - rounded) / mask.numel()) ** 0.5
    assert abs((mask == 0).double().mean().item() - rounded) < 4 * error
    assert abs(mask.double().mean().item() - 1) < 4 * error / (1 - rounded)


def test_no_dropout_keeps_all():
    assert torch.equal(draw(5, rows=2, columns=3, dropout=0.0), torch.ones(2, 3))


@pytest.mark.parametrize("dropout", [-0.1, 1.0])
def test_dropping_all_is_refused(dropout):
    with pytest.raises(ValueError, match=f"dropout is {dropout}"):
        draw(5, dropout=dropout)
