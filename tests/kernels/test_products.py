"""Products by the kernel are those of double precision, with gradients, in any layout."""

import pytest
import torch

from elmore.config import Precision
from elmore.kernels import products
from elmore.kernels.products import apply_linear, find_product_kernel, multiply
from elmore.model.summed_loss import sum_losses
from tests.kernels import variants

WIDE = [name for name in variants.NATIVE if name != "avx2"]


@pytest.fixture(params=WIDE, scope="module")
def kernel(request):
    with variants.using(request.param):
        yield find_product_kernel([torch.zeros(1)])


@pytest.fixture
def always(monkeypatch):
    monkeypatch.setattr(products, "MIN_PRODUCTS", 0)


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 33, 7), (40, 100, 70), (100, 530, 3)])
@pytest.mark.parametrize("is_transposed", [(False, False), (True, False), (False, True)])
def test_a_product_is_that_of_double_precision(kernel, always, shape, is_transposed):
    num_rows, num_inputs, num_outputs = shape
    x, y = draw(num_rows, num_inputs), draw(num_inputs, num_outputs, seed=1)
    if is_transposed[0]:
        x = x.t().contiguous().t()
    if is_transposed[1]:
        y = y.t().contiguous().t()
    assert kernel is not None
    found = multiply(x, y)
    assert found.is_contiguous()
    torch.testing.assert_close(found.double(), x.double() @ y.double(), atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("is_transposed", [False, True])
def test_factors_are_rounded_to_bf16_and_sums_are_not(kernel, always, is_transposed):
    """Without bf16 instructions, one factor stays as it is."""
    x, y = draw(40, 1037), draw(1037, 70, seed=1)
    if is_transposed:
        x = x.t().contiguous().t()
    found = multiply(x, y, precision=Precision.BF16).double()
    factors = [(x, y), (x.bfloat16(), y), (x, y.bfloat16()), (x.bfloat16(), y.bfloat16())]
    errors = [(found - a.double() @ b.double()).abs().max().item() for a, b in factors]
    wanted = errors[3] if kernel.name == "avx512_bf16" else min(errors[1:3])
    assert wanted < 1e-3
    assert errors[0] > 0.02


def test_gradients_of_a_linear_layer_are_those_of_torch(kernel, always):
    x, weight, bias = draw(30, 20), draw(50, 20, seed=1), draw(50, seed=2)
    factor = draw(30, 50, seed=3)
    found = [tensor.clone().requires_grad_() for tensor in (x, weight, bias)]
    wanted = [tensor.double().requires_grad_() for tensor in (x, weight, bias)]
    (apply_linear(kernel, *found) * factor).sum().backward()
    (torch.nn.functional.linear(*wanted) * factor).sum().backward()
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours.grad.double(), theirs.grad, atol=1e-4, rtol=1e-5)


def test_only_the_gradients_that_are_needed_are_computed(kernel, always):
    weight = draw(5, 3).requires_grad_()
    apply_linear(kernel, draw(4, 3), weight, draw(5)).sum().backward()
    assert weight.grad is not None


def test_a_loss_and_its_gradients_are_those_of_double_precision(kernel):
    outputs, weight, bias = draw(70, 24), draw(90, 24, seed=1), draw(90, seed=2)
    targets = torch.randint(0, 90, (70,), generator=torch.Generator().manual_seed(3))
    found = [tensor.clone().requires_grad_() for tensor in (outputs, weight, bias)]
    wanted = [tensor.double().requires_grad_() for tensor in (outputs, weight, bias)]
    loss = sum_losses(found[0], targets, weight=found[1], bias=found[2], rows_at_once=32)
    loss.backward()
    logits = torch.nn.functional.linear(*wanted)
    expected = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
    expected.backward()
    torch.testing.assert_close(loss.double(), expected, atol=1e-3, rtol=1e-5)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours.grad.double(), theirs.grad, atol=1e-4, rtol=1e-4)


def test_narrow_kernels_and_other_types_leave_products_to_torch():
    with variants.using("avx2"):
        assert find_product_kernel([torch.zeros(1)]) is None
    assert find_product_kernel([torch.zeros(1, dtype=torch.float64)]) is None
