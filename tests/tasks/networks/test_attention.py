import math

import numpy as np
import torch

from elmore.tasks.networks.attention import (
    SelfAttentivePooling,
    align,
    attend,
    masked_softmax,
    pool_max,
    pool_mean,
    pool_min,
)

LENGTHS = [3, 5, 1]
OTHER_LENGTHS = [4, 1, 2]


def make(lengths, *, seed, behind):
    """Vectors of sentences, and something behind their ends."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(len(lengths), max(lengths), 2, generator=generator)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    x[~mask] = behind
    return x, mask


def average(vectors, scores):
    """The mean by softmax, in plain Python."""
    shares = [math.exp(score) for score in scores]
    return [
        sum(share * vector[k] for share, vector in zip(shares, vectors, strict=True)) / sum(shares)
        for k in range(len(vectors[0]))
    ]


def dot(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


def slow_align(queries, others):
    return [average(others, [dot(query, other) for other in others]) for query in queries]


def test_each_token_gets_the_mean_of_the_other_sentence_by_similarity():
    for behind in (0.0, 7.0, -7.0):
        first, first_mask = make(LENGTHS, seed=0, behind=behind)
        second, second_mask = make(OTHER_LENGTHS, seed=1, behind=behind)
        of_first, of_second = align(first, second, first_mask=first_mask, second_mask=second_mask)
        own = attend(first, first_mask)
        for row, (length, other_length) in enumerate(zip(LENGTHS, OTHER_LENGTHS, strict=True)):
            one, other = first[row, :length].tolist(), second[row, :other_length].tolist()
            np.testing.assert_allclose(of_first[row, :length], slow_align(one, other), rtol=1e-4)
            np.testing.assert_allclose(
                of_second[row, :other_length], slow_align(other, one), rtol=1e-4
            )
            np.testing.assert_allclose(own[row, :length], slow_align(one, one), rtol=1e-4)


def test_pools_are_those_of_the_tokens_alone():
    pooling = SelfAttentivePooling(input_dim=2)
    weights = pooling.linear.weight[0].tolist()
    for behind in (0.0, 50.0, -50.0):
        x, mask = make(LENGTHS, seed=0, behind=behind)
        with torch.no_grad():
            found = [pool(x, mask) for pool in (pool_mean, pool_max, pool_min, pooling)]
        for row, length in enumerate(LENGTHS):
            tokens = x[row, :length].tolist()
            columns = list(zip(*tokens, strict=True))
            wanted = [
                [sum(column) / length for column in columns],
                [max(column) for column in columns],
                [min(column) for column in columns],
                average(tokens, [dot(weights, token) for token in tokens]),
            ]
            for pooled, right in zip(found, wanted, strict=True):
                np.testing.assert_allclose(pooled[row], right, rtol=1e-4)


def test_gradients_are_finite_where_there_is_no_token():
    first, first_mask = make(LENGTHS, seed=0, behind=0.0)
    second, second_mask = make(OTHER_LENGTHS, seed=1, behind=0.0)
    first.requires_grad_()
    of_first, of_second = align(first, second, first_mask=first_mask, second_mask=second_mask)
    total = pool_max(of_first, first_mask).sum() + pool_min(of_second, second_mask).sum()
    total.backward()
    assert first.grad.isfinite().all()
    assert not first.grad[~first_mask].any()


def test_shares_are_zero_where_there_is_nothing_to_share_among():
    mask = torch.tensor([[True, False, True], [False, False, False]])
    shares = masked_softmax(torch.tensor([[1.0, 50.0, 1.0], [1.0, 2.0, 3.0]]), mask)
    torch.testing.assert_close(shares, torch.tensor([[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]]))
