import torch

from elmore.text.batches import make_batch
from tests import tiny


def test_each_distinct_token_is_spelled_once():
    model = tiny.model(tiny.word_and_char_config())
    batch = make_batch([["a", "bad", "a"], [], ["bad"]], model.speller)
    assert batch.lengths.tolist() == [5, 2, 3]
    assert batch.positions.tolist() == [0, 2, 3, 2, 1, 0, 1, 0, 3, 1]
    assert batch.tokens.char_ids.shape == (4, 7)
    assert batch.tokens.word_ids.tolist() == [1, 2, 4, 5]  # <bos>, <eos>, a, bad


def test_a_token_that_looks_like_a_marker_is_not_confused_with_one():
    model = tiny.model()
    batch = make_batch([["\0", "", "<S>"]], model.speller)
    assert batch.positions.tolist() == [0, 2, 3, 4, 1]
    assert torch.equal(batch.tokens.char_ids[4], batch.tokens.char_ids[0])  # as the peers spell it


def test_no_sentences_make_a_batch_of_none():
    batch = make_batch([], tiny.model().speller)
    assert len(batch.lengths) == len(batch.positions) == 0
