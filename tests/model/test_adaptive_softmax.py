"""The adaptive softmax against its formula, and the methods it shares with the plain one."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from elmore.model import summed_loss
from elmore.model.adaptive_softmax import AdaptiveSoftmax, choose_cutoffs

NUM_WORDS, DIM, CUTOFFS = 30, 16, (5, 12)
TARGETS = [0, 4, 5, 11, 12, 29, 5]


def make_softmax(*, seed=0):
    softmax = AdaptiveSoftmax(num_words=NUM_WORDS, dim=DIM, cutoffs=CUTOFFS).double()
    softmax.initialize(seed)
    return softmax


def make_outputs():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(len(TARGETS), DIM, generator=generator, dtype=torch.float64)


def log_softmax(scores):
    return scores - np.log(np.exp(scores).sum())


def reference(softmax, x):
    """Return (V,) log p: a word of the head, or its cluster's log p and its own inside it."""
    weights = {name: weight.detach().numpy() for name, weight in softmax.named_parameters()}
    head = log_softmax(weights["softmax.head.weight"] @ x + weights["softmax.head.bias"])
    log_probs = [head[: CUTOFFS[0]]]
    for cluster in range(2):
        narrow = weights[f"softmax.tail.{cluster}.0.weight"] @ x
        inside = log_softmax(weights[f"softmax.tail.{cluster}.1.weight"] @ narrow)
        log_probs.append(head[CUTOFFS[0] + cluster] + inside)
    return np.concatenate(log_probs)


def test_probabilities_are_those_of_the_formula_and_add_up():
    softmax, outputs = make_softmax(), make_outputs()
    with torch.no_grad():
        softmax.softmax.head.bias.normal_(generator=torch.Generator().manual_seed(2))
    wanted = np.stack([reference(softmax, x) for x in outputs.numpy()])
    np.testing.assert_allclose(np.exp(wanted).sum(axis=1), 1.0)
    np.testing.assert_allclose(softmax.log_probs(outputs).detach(), wanted, rtol=1e-12)
    losses = -wanted[range(len(TARGETS)), TARGETS]
    targets = torch.tensor(TARGETS)
    np.testing.assert_allclose(softmax.losses(outputs, targets), losses, rtol=1e-12)
    assert softmax.total_loss(outputs, targets).item() == pytest.approx(losses.sum(), rel=1e-12)


def test_losses_in_parts_are_the_losses(monkeypatch):
    softmax, outputs, targets = make_softmax(), make_outputs(), torch.tensor(TARGETS)
    whole = softmax.losses(outputs, targets)
    assert not whole.requires_grad
    monkeypatch.setattr(summed_loss, "_MAX_ROWS", 2)
    assert_close(softmax.losses(outputs, targets), whole, rtol=1e-13, atol=1e-13)
    none = softmax.losses(outputs[:0], targets[:0])
    assert none.shape == (0,)
    assert softmax.total_loss(outputs[:0], targets[:0]).item() == 0.0


def test_the_total_loss_reaches_every_weight():
    softmax, outputs = make_softmax(), make_outputs().requires_grad_()
    softmax.total_loss(outputs, torch.tensor(TARGETS)).backward()
    assert all(weight.grad.any() for weight in [outputs, *softmax.parameters()])


def test_one_seed_gives_one_start():
    first, second, other = make_softmax(), make_softmax(), make_softmax(seed=1)
    for one, same, different in zip(
        first.parameters(), second.parameters(), other.parameters(), strict=True
    ):
        assert torch.equal(one, same)
        assert one.dim() == 1 or not torch.equal(one, different)
    assert (first.num_words, first.dim, first.cutoffs) == (NUM_WORDS, DIM, CUTOFFS)


@pytest.mark.parametrize("num_words", [2, 3, 500, 7_999, 8_000, 100_000, 1_000_000])
def test_cutoffs_fit_any_vocabulary(num_words):
    cutoffs = choose_cutoffs(num_words)
    assert list(cutoffs) == sorted(set(cutoffs))
    assert cutoffs[0] >= 1
    assert cutoffs[-1] < num_words
    if num_words < 1000:
        softmax = AdaptiveSoftmax(num_words=num_words, dim=4)
        softmax.initialize(0)
        assert softmax.cutoffs == cutoffs
        assert softmax.log_probs(torch.ones(1, 4)).exp().sum().item() == pytest.approx(1, rel=1e-5)


def test_a_cluster_without_width_is_refused():
    with pytest.raises(ValueError, match=r"3 cutoffs .* dim 32; .* at least 64"):
        AdaptiveSoftmax(num_words=100, dim=32, cutoffs=(10, 20, 30))
