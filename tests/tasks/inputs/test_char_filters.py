import torch
from torch.testing import assert_close

from elmore.tasks.inputs.char_filters import CharFilters
from elmore.tasks.inputs.token_batch import TokenBatcher


def test_the_strongest_answer_of_each_filter():
    filters = CharFilters(num_filters=5, width=3, embedding_dim=4)
    spellings = TokenBatcher(words=[], max_chars=8).make([["bad", "abracadabra"]]).spellings
    found = filters(spellings)
    for row, ids in enumerate(spellings):
        chars = filters.embedding(ids)  # (C, E)
        windows = [chars[start : start + 3].T for start in range(6)]
        answers = torch.stack(
            [
                (filters.filters.weight * window).sum((1, 2)) + filters.filters.bias
                for window in windows
            ]
        )
        assert_close(found[row], answers.max(dim=0).values.relu())


def test_spelling_matters_and_the_filler_does_not_learn():
    filters = CharFilters(num_filters=20, embedding_dim=4)
    found = filters(TokenBatcher(words=[], max_chars=8).make([["bank", "Bank", "banks"]]).spellings)
    assert len({tuple(row) for row in found.tolist()}) == 3
    found.sum().backward()
    assert filters.embedding.weight.grad[ord("b")].any()
    assert not filters.embedding.weight.grad[filters.embedding.padding_idx].any()
