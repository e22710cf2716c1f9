"""Exponents of a softmax, its loss and its gradients, against double precision."""

import pytest
import torch

from elmore.config import Precision
from elmore.kernels.library import find_kernel
from elmore.kernels.softmax import take_exponents
from elmore.model.sampling import Negatives
from elmore.model.summed_loss import sum_losses
from tests.kernels import variants


@pytest.fixture(params=variants.NATIVE, scope="module")
def kernel(request):
    with variants.using(request.param):
        yield find_kernel()


def draw(*shape: int, seed: int = 0, scale: float = 4.0) -> torch.Tensor:
    return scale * torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("num_candidates", [1, 7, 16, 33, 2048, 2051])
@pytest.mark.parametrize("offset", [0.0, 1000.0, -1000.0])
def test_rows_are_those_of_double_precision(kernel, num_candidates, offset):
    logits, target = draw(40, num_candidates) + offset, draw(40, seed=1) + offset
    columns = torch.arange(40) % (num_candidates + 1) - 1
    wanted = logits.double()
    rows = torch.arange(40)[columns >= 0]
    wanted[rows, columns[rows]] = -torch.inf
    exponents = logits.clone()
    losses, own, shares = take_exponents(kernel, exponents, target, columns)
    scores = torch.cat([wanted, target.double()[:, None]], dim=1)
    probabilities = scores.softmax(dim=1)
    near = {"atol": 1e-6, "rtol": 1e-6}
    torch.testing.assert_close(losses.double(), -scores.log_softmax(dim=1)[:, -1], **near)
    torch.testing.assert_close(own.double(), probabilities[:, :-1].sum(dim=1).neg(), **near)
    torch.testing.assert_close(
        (exponents * shares[:, None]).double(), probabilities[:, :-1], atol=1e-12, rtol=2e-6
    )


def test_exponents_are_right_to_two_units_in_the_last_place(kernel):
    numbers = torch.linspace(0, -86.9, 40_001)
    exponents = numbers[None].clone()
    take_exponents(kernel, exponents, torch.zeros(1), torch.tensor([-1]))
    wanted = numbers.double().exp()
    assert ((exponents[0].double() - wanted) / wanted).abs().max() < 2 * 2**-23
    tiny = torch.tensor([[-88.0, -1e30, -torch.inf]])
    take_exponents(kernel, tiny, torch.zeros(1), torch.tensor([-1]))
    assert tiny.tolist() == [[0.0, 0.0, 0.0]]


def test_a_row_does_not_depend_on_the_others_or_on_threads(kernel):
    logits, target, columns = draw(90, 45), draw(90, seed=1), torch.arange(90) % 46 - 1
    together = take_exponents(kernel, logits.clone(), target, columns)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = take_exponents(
            kernel, logits[7:8].clone(), target[7:8].clone(), columns[7:8].clone()
        )
    finally:
        torch.set_num_threads(before)
    for all_rows, one in zip(together, alone, strict=True):
        assert torch.equal(all_rows[7:8], one)


def test_a_number_that_is_none_is_not_hidden(kernel):
    logits = draw(2, 20)
    logits[1, 3] = torch.nan
    losses, _, _ = take_exponents(kernel, logits, draw(2), torch.tensor([-1, -1]))
    assert losses.isnan().tolist() == [False, True]


def test_wrong_arguments_do_not_reach_native_code(kernel):
    logits, target = draw(2, 3), draw(2)
    with pytest.raises(IndexError, match="columns from -1 to 2"):
        take_exponents(kernel, logits, target, torch.tensor([0, 3]))
    with pytest.raises(ValueError, match="contiguous logits"):
        take_exponents(kernel, draw(3, 2).t(), target, torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"shape \[2\]"):
        take_exponents(kernel, logits, draw(3), torch.tensor([0, 1]))
    none = take_exponents(kernel, draw(0, 3), draw(0), torch.zeros(0, dtype=torch.int64))
    assert [len(part) for part in none] == [0, 0, 0]


@pytest.mark.parametrize("precision", [Precision.F32, Precision.BF16])
def test_gradients_of_a_loss_are_those_of_double_precision(kernel, precision):
    outputs, weight, bias = draw(70, 24, scale=1), draw(200, 24, seed=1, scale=1), draw(200, seed=2)
    targets = torch.arange(70) * 3 % 200
    words = torch.arange(0, 200, 2)
    negatives = Negatives(words=words, log_expected=draw(100, seed=3, scale=0.1))
    found = [tensor.clone().requires_grad_() for tensor in (outputs, weight, bias)]
    loss = sum_losses(
        found[0], targets, weight=found[1], bias=found[2], negatives=negatives, precision=precision
    )
    loss.backward()
    x, w, b = wanted = [tensor.double().requires_grad_() for tensor in (outputs, weight, bias)]
    logits = x @ w[words].t() + b[words] - negatives.log_expected.double()
    logits = logits.masked_fill(words == targets[:, None], -torch.inf)
    own = (x * w[targets]).sum(dim=1) + b[targets]
    exact = (torch.cat([logits, own[:, None]], dim=1).logsumexp(dim=1) - own).sum()
    exact.backward()
    assert loss.item() == pytest.approx(exact.item(), rel=1e-5)
    limit = 1e-5 if precision is Precision.F32 else 1e-2
    for ours, theirs in zip(found, wanted, strict=True):
        gradient = ours.grad.to_dense().double()
        assert (gradient - theirs.grad).norm() / theirs.grad.norm() < limit
