import torch
from hypothesis import given
from hypothesis import strategies as st

from elmore.model.packing import drop_markers, invert, pack, to_padded

lengths = st.lists(st.integers(1, 9), min_size=1, max_size=8).map(torch.tensor)


@given(lengths)
def test_every_token_is_read_once_in_each_direction(lengths):
    packing = pack(lengths, device=torch.device("cpu"))
    everything = list(range(int(lengths.sum())))
    assert sorted(packing.forward_lm.tolist()) == everything
    assert sorted(packing.backward_lm.tolist()) == everything
    assert sum(packing.step_sizes) == len(everything)


def test_steps_read_the_longest_sentence_first():
    packing = pack(torch.tensor([1, 3]), device=torch.device("cpu"))
    assert packing.step_sizes == [2, 1, 1]
    # Flat: token 0 is the short sentence, 1 to 3 the long one.
    assert packing.forward_lm.tolist() == [1, 0, 2, 3]
    assert packing.backward_lm.tolist() == [3, 0, 2, 1]


@given(st.integers(1, 9), st.integers(1, 9))
def test_one_sentence_is_read_as_it_is_next_to_a_shorter_one(length, more):
    alone = pack(torch.tensor([length + more]), device=torch.device("cpu"))
    both = pack(torch.tensor([length + more, length]), device=torch.device("cpu"))
    is_first = both.forward_lm < length + more
    assert alone.step_sizes == [1] * (length + more)
    assert alone.forward_lm.equal(both.forward_lm[is_first])
    assert alone.backward_lm.equal(both.backward_lm[both.backward_lm < length + more])
    assert alone.order.tolist() == [0]


@given(st.permutations(range(7)).map(torch.tensor))
def test_inverting_undoes(places):
    assert torch.equal(places[invert(places)], torch.arange(7))


def test_padding_puts_zeros_after_each_sentence():
    flat = torch.arange(1.0, 4.0).unsqueeze(1)
    padded, mask = to_padded(flat, torch.tensor([1, 0, 2]))
    assert padded.squeeze(-1).tolist() == [[1, 0], [0, 0], [2, 3]]
    assert mask.tolist() == [[True, False], [False, False], [True, True]]


def test_the_marks_around_every_sentence_are_dropped():
    flat = torch.arange(2 * 9, dtype=torch.float32).reshape(2, 9, 1)  # two layers
    padded, mask = drop_markers(flat, torch.tensor([4, 2, 3]))
    assert mask.tolist() == [[True, True], [False, False], [True, False]]
    assert padded[..., 0].tolist() == [
        [[1, 2], [0, 0], [7, 0]],
        [[10, 11], [0, 0], [16, 0]],
    ]
