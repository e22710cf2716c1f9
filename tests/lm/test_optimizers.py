"""Sparse and dense gradients change weights alike, and the rules are those of their papers."""

import numpy as np
import pytest
import torch
from torch import nn

from elmore.errors import ConfigError
from elmore.lm.optimizers import Optimizer, clip_gradients
from elmore.lm.settings import OptimizerSettings

NAMES = ["adagrad", "adamw"]


def make(name: str, *, is_sparse: bool, **settings) -> tuple[nn.Parameter, Optimizer]:
    weight = nn.Parameter(torch.arange(12.0, dtype=torch.float64).view(4, 3) / 10)
    optimizer = Optimizer(
        {"softmax.weight": weight},
        sparse=["softmax.weight"] if is_sparse else [],
        settings=OptimizerSettings(
            name=name, **{"warmup_steps": 0, "final_share": 1.0, **settings}
        ),
        num_steps=16,
    )
    return weight, optimizer


def sparse(dense: torch.Tensor) -> torch.Tensor:
    return dense.to_sparse(1).coalesce()


@pytest.mark.parametrize("name", NAMES)
def test_a_sparse_gradient_of_every_row_is_a_dense_one(name):
    results = []
    for is_sparse in (False, True):
        weight, optimizer = make(name, is_sparse=is_sparse)
        for step in range(4):
            gradient = torch.sin(weight.detach() * (step + 1)) + 0.1
            weight.grad = sparse(gradient) if is_sparse else gradient
            optimizer.prepare(step)
            optimizer.step(step)
        results.append(weight.detach())
    torch.testing.assert_close(results[0], results[1], atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_rows_without_a_gradient_stay_as_they_are(name):
    weight, optimizer = make(name, is_sparse=True)
    before = weight.detach().clone()
    gradient = torch.zeros_like(weight)
    gradient[2] = 1.0
    weight.grad = sparse(gradient)
    optimizer.prepare(0)
    optimizer.step(0)
    assert torch.equal(weight[[0, 1, 3]], before[[0, 1, 3]])
    assert (weight[2] < before[2]).all()


def test_adagrad_is_that_of_its_paper():
    weight, optimizer = make("adagrad", is_sparse=True, learning_rate=0.2)
    expected, total = weight.detach().numpy().copy(), np.ones((4, 3))
    for step in range(3):
        gradient = np.cos(expected + step)
        weight.grad = sparse(torch.from_numpy(gradient))
        optimizer.prepare(step)
        optimizer.step(step)
        total += gradient**2
        expected -= 0.2 * gradient / np.sqrt(total)
    np.testing.assert_allclose(weight.detach().numpy(), expected, atol=1e-9)


def test_adam_is_that_of_its_paper():
    weight, optimizer = make("adamw", is_sparse=True, learning_rate=0.01)
    expected = weight.detach().numpy().copy()
    mean, square = np.zeros((4, 3)), np.zeros((4, 3))
    for step in range(3):
        gradient = np.cos(expected + step)
        weight.grad = sparse(torch.from_numpy(gradient))
        optimizer.prepare(step)
        optimizer.step(step)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        corrected = mean / (1 - 0.9 ** (step + 1))
        expected -= 0.01 * corrected / (np.sqrt(square / (1 - 0.999 ** (step + 1))) + 1e-8)
    np.testing.assert_allclose(weight.detach().numpy(), expected, atol=1e-12)


def test_all_gradients_are_shortened_together():
    dense, rows = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(3, 2))
    dense.grad = torch.tensor([3.0, 0.0])
    # The same row twice: it counts with its sum.
    rows.grad = torch.sparse_coo_tensor(
        [[1, 1]], [[1.0, 0.0], [3.0, 0.0]], (3, 2), check_invariants=True
    )
    assert clip_gradients([dense, rows], 2.5) == pytest.approx(5.0)
    assert dense.grad.tolist() == [1.5, 0.0]
    assert rows.grad.to_dense()[1].tolist() == [2.0, 0.0]
    assert clip_gradients([dense, rows], 2.6) == pytest.approx(2.5)
    assert dense.grad.tolist() == [1.5, 0.0]


def test_the_rate_rises_then_falls_in_straight_lines():
    _, optimizer = make(
        "adamw", is_sparse=False, learning_rate=1.0, warmup_steps=4, final_share=0.25
    )
    rates = [optimizer.learning_rate(step) for step in range(17)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert rates[4] == 1.0
    assert rates[10] == pytest.approx(1 - 0.75 / 2)
    assert rates[16] == pytest.approx(0.25)
    optimizer.num_steps = 8
    assert optimizer.learning_rate(1) == 1.0


def test_what_is_not_finite_is_refused_before_a_weight_changes():
    weight, optimizer = make("adagrad", is_sparse=False)
    before = weight.detach().clone()
    weight.grad = torch.full_like(weight, torch.nan)
    with pytest.raises(ConfigError, match="not finite"):
        optimizer.prepare(0)
    assert torch.equal(weight, before)


def test_biases_and_the_softmax_do_not_decay():
    weights = {
        "bilm.weight": nn.Parameter(torch.ones(2, 2)),
        "bilm.bias": nn.Parameter(torch.ones(2)),
        "softmax.weight": nn.Parameter(torch.ones(2, 2)),
    }
    settings = OptimizerSettings(name="adamw", learning_rate=0.1, weight_decay=0.5, warmup_steps=0)
    optimizer = Optimizer(weights, sparse=[], settings=settings, num_steps=1)
    for weight in weights.values():
        weight.grad = torch.zeros_like(weight)
    optimizer.prepare(0)
    optimizer.step(0)
    assert weights["bilm.weight"][0, 0].item() == pytest.approx(0.95)
    assert weights["bilm.bias"][0].item() == 1.0
    assert weights["softmax.weight"][0, 0].item() == 1.0
