from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from elmore.read.engine import cut_batches

lengths = st.lists(st.integers(1, 30), max_size=40)


@given(lengths, st.integers(1, 50))
def test_batches_hold_every_sentence_once_within_the_budget(lengths, max_tokens):
    batches = list(cut_batches(lengths, max_tokens=max_tokens))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or sum(lengths[place] for place in batch) <= max_tokens


@given(lengths, st.integers(1, 50))
def test_no_batch_ends_before_it_is_full(lengths, max_tokens):
    batches = list(cut_batches(lengths, max_tokens=max_tokens))
    for batch, following in pairwise(batches):
        num_tokens = sum(lengths[place] for place in batch) + lengths[following[0]]
        assert num_tokens > max_tokens
        assert lengths[batch[-1]] >= lengths[following[0]]
