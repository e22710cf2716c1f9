"""Muon moves a matrix along its orthogonalized momentum; a numpy version says where to."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import nn

from elmore.lm.muon import COEFFICIENTS, MOMENTUM, Muon, orthogonalize
from elmore.lm.optimizers import Optimizer
from elmore.lm.settings import OptimizerSettings

ROUGH = 0.114  # how far from 1 a singular value may be after the last step


def make_matrix(rows: int, columns: int, *, smallest: float, seed: int = 0) -> torch.Tensor:
    """A matrix whose singular values go from `smallest` to 1 of its norm."""
    generator = torch.Generator().manual_seed(seed)
    random = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    left, _, right = torch.linalg.svd(random, full_matrices=False)
    values = torch.logspace(0, float(np.log10(smallest)), min(rows, columns)).double()
    return left @ torch.diag(values) @ right


@pytest.mark.parametrize("shape", [(40, 12), (12, 40), (16, 16)])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_singular_values_become_one_and_vectors_stay(shape, scale):
    matrix = make_matrix(*shape, smallest=0.01)
    found = orthogonalize((matrix * scale).float()).double()
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    in_their_basis = left.T @ found @ right.T
    assert (in_their_basis.diagonal() - 1).abs().max() < ROUGH
    off_diagonal = in_their_basis - torch.diag(in_their_basis.diagonal())
    assert off_diagonal.abs().max() < 1e-4


def test_a_gradient_of_zeros_changes_nothing():
    assert torch.equal(orthogonalize(torch.zeros(6, 4)), torch.zeros(6, 4))


def test_coefficients_are_the_best_for_the_interval_they_meet():
    low, high = 1e-3, 1.0
    for coefficients in COEFFICIENTS:
        x = np.unique(np.concatenate([np.geomspace(low, high, 800), np.linspace(low, high, 800)]))
        powers = np.stack([x, x**3, x**5], axis=1)
        ones = np.ones((len(x), 1))
        best = linprog(
            [0, 0, 0, 1],
            A_ub=np.block([[powers, -ones], [-powers, -ones]]),
            b_ub=np.concatenate([np.ones(len(x)), -np.ones(len(x))]),
            bounds=[(None, None)] * 3 + [(0, None)],
        ).x
        error = np.abs(powers @ coefficients - 1).max()
        assert error == pytest.approx(best[3], abs=2e-3)
        low, high = 1 - best[3], 1 + best[3]
    assert error < ROUGH


def test_changes_are_those_of_a_plain_numpy_version():
    weight = nn.Parameter(make_matrix(12, 5, smallest=0.1).clone())
    optimizer = Optimizer(
        {"bilm.weight": weight},
        sparse=[],
        settings=OptimizerSettings(
            name="muon", learning_rate=0.01, warmup_steps=0, final_share=1.0, weight_decay=0.1,
            muon_min_side=2,
        ),
        num_steps=3,
    )  # fmt: skip
    expected, momentum = weight.detach().numpy().copy(), np.zeros((12, 5))
    for step in range(3):
        gradient = np.cos(7 * expected + step)
        weight.grad = torch.from_numpy(gradient.copy())
        optimizer.prepare(step)
        optimizer.step(step)
        momentum = MOMENTUM * momentum + (1 - MOMENTUM) * gradient
        ahead = (1 - MOMENTUM) * gradient + MOMENTUM * momentum
        left, values, right = np.linalg.svd(ahead, full_matrices=False)
        values /= np.linalg.norm(values)
        for a, b, c in COEFFICIENTS:
            values = a * values + b * values**3 + c * values**5
        change = 0.2 * np.sqrt(12) * (left * values) @ right
        expected = expected * (1 - 0.01 * 0.1) - 0.01 * change
    np.testing.assert_allclose(weight.detach().numpy(), expected, atol=1e-9)


def test_only_large_matrices_between_vectors_are_orthogonalized():
    weights = {
        "bilm.lstm.weight": nn.Parameter(torch.ones(8, 8)),
        "bilm.narrow.weight": nn.Parameter(torch.ones(8, 3)),
        "bilm.huge.weight": nn.Parameter(torch.ones(9, 10)),
        "bilm.long.weight": nn.Parameter(torch.ones(99, 8)),
        "bilm.lstm.bias": nn.Parameter(torch.ones(8)),
        "bilm.words.embedding.weight": nn.Parameter(torch.ones(8, 8)),
        "softmax.weight": nn.Parameter(torch.ones(8, 8)),
    }
    settings = OptimizerSettings(name="muon", muon_min_side=4, muon_max_side=8)
    optimizer = Optimizer(weights, sparse=["softmax.weight"], settings=settings, num_steps=1)
    kept = {name.split("|")[0] for name in optimizer.tensors() if name.endswith("|momentum")}
    assert kept == {"bilm.lstm.weight", "bilm.long.weight"}


def test_processes_share_the_matrices_and_get_the_changes_of_one():
    def make(rank: int, num_processes: int) -> Muon:
        matrices = []
        for number in range(3):
            matrix = nn.Parameter(make_matrix(6, 4, smallest=0.1, seed=number).float())
            matrix.grad = make_matrix(6, 4, smallest=0.1, seed=9 + number).float()
            matrices.append(matrix)
        return Muon(matrices, rank=rank, num_processes=num_processes)

    alone = make(0, 1)
    alone.prepare()
    pair = [make(rank, 2) for rank in range(2)]
    sent: list[list[torch.Tensor]] = []
    for muon in pair:
        muon.prepare(lambda changes: sent.append(list(changes)))
    assert [[bool(c.any()) for c in changes] for changes in sent] == [
        [True, False, True],
        [False, True, False],
    ]
    for one, *both in zip(alone._changes, *sent, strict=True):
        assert torch.equal(sum(both), one)


def test_nothing_changes_before_the_step():
    matrix = nn.Parameter(make_matrix(6, 4, smallest=0.1).float())
    before = matrix.detach().clone()
    matrix.grad = torch.ones_like(matrix)
    muon = Muon([matrix])
    muon.param_groups[0]["lr"] = 0.1
    muon.prepare()
    assert torch.equal(matrix, before)
    assert not muon.state[matrix]["momentum"].any()
    muon.step()
    assert not torch.equal(matrix, before)
    assert muon.state[matrix]["momentum"].any()
