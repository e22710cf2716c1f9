from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from elmore.tasks.fit.batches import draw_examples, shuffle_epoch, sort_batches

LENGTHS = np.random.default_rng(0).integers(1, 30, 500).astype(np.int32)


def shuffle(**changes):
    how = {"batch_size": 8, "max_tokens": 100, "min_steps": 1, "seed": 1, "epoch": 0, **changes}
    return shuffle_epoch(LENGTHS, **how)


@pytest.mark.parametrize(("batch_size", "max_tokens"), [(1, 1000), (8, 1000), (8, 40), (500, 64)])
def test_batches_keep_to_both_bounds_and_have_each_example_once(batch_size, max_tokens):
    made = [
        shuffle(batch_size=batch_size, max_tokens=max_tokens, seed=1, epoch=3),
        sort_batches(LENGTHS, batch_size=batch_size, max_tokens=max_tokens),
    ]
    for batches in made:
        assert Counter(place for batch in batches for place in batch) == Counter(range(500))
        for batch in batches:
            assert len(batch) <= batch_size
            # Filled up to the longest; one that is longer than the bound has a batch of its own.
            assert len(batch) == 1 or len(batch) * LENGTHS[batch].max() <= max_tokens


def test_batches_follow_from_seed_and_epoch_alone():
    assert shuffle() == shuffle()
    assert shuffle() != shuffle(epoch=1)
    assert shuffle() != shuffle(seed=2)


def test_little_data_is_read_until_there_are_enough_steps():
    once = shuffle(batch_size=100, max_tokens=10_000)
    assert len(once) == 5
    batches = shuffle(batch_size=100, max_tokens=10_000, min_steps=11)
    assert batches[:5] == once
    assert Counter(place for batch in batches for place in batch) == Counter([*range(500)] * 3)
    assert batches[5:10] != once, "in another order"
    assert batches[5:] != shuffle(batch_size=100, max_tokens=10_000, min_steps=11, epoch=1)[5:]


def test_examples_of_like_length_share_a_batch_and_batches_come_in_any_order():
    batches = shuffle(batch_size=10, max_tokens=10_000, seed=1, epoch=0)
    assert np.mean([np.ptp(LENGTHS[batch]) for batch in batches]) < 3
    shortest = [int(LENGTHS[batch].min()) for batch in batches]
    assert shortest != sorted(shortest)


def test_a_larger_share_has_all_examples_of_a_smaller_one():
    drawn = [
        draw_examples(200, share=share, most=None, seed=5) for share in (0.001, 0.1, 0.35, 0.999, 1)
    ]
    assert [len(numbers) for numbers in drawn] == [1, 20, 70, 200, 200]
    for smaller, larger in pairwise(drawn):
        assert set(smaller) <= set(larger)
        assert smaller == sorted(set(smaller))
    assert set(draw_examples(200, share=1.0, most=20, seed=5)) == set(drawn[1])
    # With a limit, a share is one of what the limit leaves.
    assert set(draw_examples(2000, share=0.1, most=200, seed=5)) < set(
        draw_examples(2000, share=1.0, most=200, seed=5)
    )
    assert len(draw_examples(2000, share=0.1, most=200, seed=5)) == 20
    assert len(draw_examples(200, share=0.1, most=2000, seed=5)) == 20


def test_another_seed_draws_other_examples():
    one, other = (draw_examples(200, share=0.1, most=None, seed=seed) for seed in (1, 2))
    assert one != other
