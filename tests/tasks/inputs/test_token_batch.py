import torch

from elmore.tasks.inputs.token_batch import NO_TOKEN, UNKNOWN, TokenBatcher, copy_to

SENTENCES = [["The", "bank", "of", "the", "Seine"], ["Bank"]]


def test_a_token_is_found_as_it_is_spelled_or_else_in_lower_case():
    batcher = TokenBatcher(words=["the", "bank", "Bank", "the"])
    assert [batcher.find_row(token) for token in ("the", "The", "bank", "Bank", "BANK")] == [
        2,
        2,
        3,
        4,
        3,
    ]
    assert batcher.find_row("Seine") == UNKNOWN


def test_positions_after_the_end_are_padding():
    batch = TokenBatcher(words=["bank"]).make(SENTENCES)
    assert batch.words.tolist() == [
        [UNKNOWN, 2, UNKNOWN, UNKNOWN, UNKNOWN],
        [2, NO_TOKEN, NO_TOKEN, NO_TOKEN, NO_TOKEN],
    ]
    assert batch.lengths.tolist() == [5, 1]
    assert batch.mask.tolist() == [[True] * 5, [True] + [False] * 4]


def test_each_distinct_token_is_spelled_once():
    batch = TokenBatcher(words=[], max_chars=7).make([["a", "bb", "a"], ["bb"]])
    assert batch.spellings.shape == (2, 7)
    assert batch.spelled.tolist() == [[0, 1, 0], [1, 0, 0]]
    assert batch.spellings[0, 1] == ord("a")


def test_a_batch_moves_whole():
    batch = TokenBatcher(words=["bank"]).make(SENTENCES).with_layers(torch.ones(3, 2, 5, 4))
    moved = copy_to(batch, "meta")
    assert {getattr(moved, name).device.type for name in moved.__slots__} == {"meta"}
    assert copy_to(batch, "cpu").layers is not None
    assert copy_to(None, "meta") is None
    assert copy_to(torch.ones(2), "meta").device.type == "meta"
