"""Losses and gradients of a softmax over words, against loops in numpy."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from elmore.model import summed_loss, word_softmax
from elmore.model.sampling import LogUniformSampler, Negatives
from elmore.model.summed_loss import choose_rows, sum_losses
from elmore.model.word_softmax import WordSoftmax

NUM_WORDS, DIM = 200, 6
# Twice one word, words that are always among the negatives, and words that seldom are.
TARGETS = [0, 3, 199, 3, 57, 120, 1, 198]


def make_softmax(*, num_words=NUM_WORDS, dim=DIM, dtype=torch.float64, seed=0):
    softmax = WordSoftmax(num_words=num_words, dim=dim).to(dtype)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        softmax.weight.copy_(torch.randn(num_words, dim, generator=generator))
        softmax.bias.copy_(torch.randn(num_words, generator=generator))
    return softmax


def make_outputs(num_rows=8, *, dim=DIM, dtype=torch.float64, seed=1):
    generator = torch.Generator().manual_seed(seed)
    outputs = torch.randn(num_rows, dim, generator=generator, dtype=torch.float64)
    return outputs.to(dtype).requires_grad_()


def draw_negatives(num_negatives, *, num_words=NUM_WORDS, seed=0):
    sampler = LogUniformSampler(num_words=num_words, num_negatives=num_negatives)
    return sampler.draw(np.random.default_rng(seed))


def reference(softmax, outputs, targets, negatives=None):
    """Return the loss and the gradients of outputs, weight and bias, row by row."""
    weight, bias, x = (t.detach().double().numpy() for t in (softmax.weight, softmax.bias, outputs))
    words = range(len(bias)) if negatives is None else negatives.words.tolist()
    corrections = [0.0] * len(bias) if negatives is None else negatives.log_expected.tolist()
    loss, grad_x, grad_weight, grad_bias = 0.0, np.zeros_like(x), 0 * weight, 0 * bias
    for row, target in enumerate(targets):
        scores = {target: weight[target] @ x[row] + bias[target]}
        for word, correction in zip(words, corrections, strict=True):
            if word != target:
                scores[word] = weight[word] @ x[row] + bias[word] - correction
        total = sum(np.exp(score) for score in scores.values())
        loss -= np.log(np.exp(scores[target]) / total)
        for word, score in scores.items():
            slope = np.exp(score) / total - (word == target)
            grad_x[row] += slope * weight[word]
            grad_weight[word] += slope * x[row]
            grad_bias[word] += slope
    return loss, grad_x, grad_weight, grad_bias


def gradients(softmax, outputs, loss):
    """Return the loss and its gradients, dense."""
    softmax.zero_grad()
    outputs.grad = None
    loss.backward()
    grads = (outputs.grad, softmax.weight.grad, softmax.bias.grad)
    return (loss.item(), *(g.to_dense().double().numpy() for g in grads))


def assert_alike(found, wanted, tolerance=1e-11):
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("num_negatives", [1, 20, 150])
def test_sampled_loss_and_gradients(num_negatives):
    softmax, outputs, targets = make_softmax(), make_outputs(), torch.tensor(TARGETS)
    negatives = draw_negatives(num_negatives)
    loss = softmax.sampled_loss(outputs, targets, negatives)
    wanted = reference(softmax, outputs, TARGETS, negatives)
    assert_alike(gradients(softmax, outputs, loss), wanted)


def test_total_loss_and_gradients():
    softmax, outputs, targets = make_softmax(), make_outputs(), torch.tensor(TARGETS)
    loss = softmax.total_loss(outputs, targets)
    assert_alike(gradients(softmax, outputs, loss), reference(softmax, outputs, TARGETS))
    assert not softmax.weight.grad.is_sparse


@pytest.mark.parametrize("num_negatives", [NUM_WORDS, 10 * NUM_WORDS])
def test_with_every_word_the_sampled_loss_is_the_total_loss(num_negatives):
    softmax, outputs, targets = make_softmax(), make_outputs(), torch.tensor(TARGETS)
    sampled = softmax.sampled_loss(outputs, targets, draw_negatives(num_negatives))
    found = gradients(softmax, outputs, sampled)
    total = gradients(softmax, outputs, softmax.total_loss(outputs, targets))
    assert_alike(found, total, tolerance=1e-12)
    assert softmax.losses(outputs, targets).sum().item() == pytest.approx(total[0], rel=1e-12)
    by_hand = -softmax.log_probs(outputs)[range(len(TARGETS)), TARGETS]
    assert_close(softmax.losses(outputs, targets), by_hand, rtol=1e-12, atol=1e-12)


def test_the_sparse_gradient_has_rows_of_negatives_and_targets_alone():
    softmax, outputs, targets = make_softmax(), make_outputs(), torch.tensor(TARGETS)
    negatives = draw_negatives(20)
    grads = torch.autograd.grad(
        softmax.sampled_loss(outputs, targets, negatives), [softmax.weight, softmax.bias]
    )
    again = torch.autograd.grad(
        softmax.sampled_loss(outputs, targets, negatives), [softmax.weight, softmax.bias]
    )
    rows = sorted({*TARGETS, *negatives.words.tolist()})
    assert len(rows) < 28  # some targets are negatives too
    for grad, same in zip(grads, again, strict=True):
        assert grad.is_coalesced()
        assert grad.indices().tolist() == [rows]
        assert torch.equal(grad.values(), same.values())


def test_a_scaled_loss_has_scaled_gradients_however_often_it_is_asked():
    softmax, outputs, targets = make_softmax(), make_outputs(), torch.tensor(TARGETS)
    negatives = draw_negatives(20)
    loss = softmax.sampled_loss(outputs, targets, negatives)
    (2 * loss).backward(retain_graph=True)
    (3 * loss).backward()
    _, *wanted = reference(softmax, outputs, TARGETS, negatives)
    found = (outputs.grad, softmax.weight.grad, softmax.bias.grad)
    assert_alike([g.to_dense().numpy() for g in found], [5 * g for g in wanted])


@pytest.mark.parametrize("frozen", [("weight", "bias"), ("bias",), ("outputs",), ("weight",)])
def test_what_needs_no_gradient_gets_none(frozen):
    softmax, outputs, targets = make_softmax(), make_outputs(), torch.tensor(TARGETS)
    negatives = draw_negatives(20)
    leaves = {"outputs": outputs, "weight": softmax.weight, "bias": softmax.bias}
    for name in frozen:
        leaves[name].requires_grad_(False)
    softmax.sampled_loss(outputs, targets, negatives).backward()
    wanted = reference(softmax, outputs, TARGETS, negatives)[1:]
    for (name, leaf), grad in zip(leaves.items(), wanted, strict=True):
        if name in frozen:
            assert leaf.grad is None
        else:
            assert_alike([leaf.grad.to_dense().numpy()], [grad])
    with torch.no_grad():
        assert not softmax.sampled_loss(outputs, targets, negatives).requires_grad


@pytest.mark.parametrize("num_negatives", [None, 50])
def test_the_number_of_rows_at_once_changes_nothing(num_negatives):
    softmax = make_softmax()
    targets = torch.randint(NUM_WORDS, (23,), generator=torch.Generator().manual_seed(0))
    outputs = make_outputs(23)
    negatives = num_negatives and draw_negatives(num_negatives)
    found = [
        gradients(
            softmax,
            outputs,
            sum_losses(
                outputs,
                targets,
                weight=softmax.weight,
                bias=softmax.bias,
                negatives=negatives,
                rows_at_once=rows,
            ),
        )
        for rows in (None, 1, 5, 23, 1000)
    ]
    for other in found[1:]:
        assert_alike(other, found[0], tolerance=1e-12)


def test_single_precision_and_autocast():
    softmax, targets = make_softmax(dtype=torch.float32), torch.tensor(TARGETS)
    outputs, negatives = make_outputs(dtype=torch.float32), draw_negatives(50)
    wanted = reference(softmax, outputs, TARGETS, negatives)
    plain = gradients(softmax, outputs, softmax.sampled_loss(outputs, targets, negatives))
    assert_alike(plain, wanted, tolerance=2e-5)
    losses, log_probs = softmax.losses(outputs, targets), softmax.log_probs(outputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = softmax.sampled_loss(outputs, targets, negatives)
        assert torch.equal(softmax.losses(outputs, targets), losses)
        assert torch.equal(softmax.log_probs(outputs), log_probs)
    assert_alike(gradients(softmax, outputs, loss), plain, tolerance=0)
    rounded = outputs.detach().bfloat16().requires_grad_()
    softmax.sampled_loss(rounded, targets, negatives).backward()
    assert rounded.grad.dtype == torch.bfloat16


@pytest.mark.parametrize("shift", [0.0, 5000.0, -5000.0])
def test_extreme_logits_overflow_nowhere(shift):
    softmax, targets = make_softmax(dtype=torch.float32), torch.tensor(TARGETS)
    outputs = (make_outputs(dtype=torch.float32) * 300).detach().requires_grad_()
    exact = make_softmax(dtype=torch.float32).double()
    targets[0] = exact.log_probs(outputs)[0].argmax()
    wanted = -exact.log_probs(outputs.double())[range(len(TARGETS)), targets]
    assert wanted.max() > 1000
    assert wanted.min() < 1e-3
    with torch.no_grad():
        softmax.bias += shift  # of all words, which changes no probability
    assert_close(softmax.losses(outputs, targets).double(), wanted, rtol=1e-4, atol=1e-3)
    for loss in (
        softmax.total_loss(outputs, targets),
        softmax.sampled_loss(outputs, targets, draw_negatives(NUM_WORDS)),
    ):
        found = gradients(softmax, outputs, loss)
        assert found[0] == pytest.approx(wanted.sum().item(), rel=1e-5)
        assert all(np.isfinite(grad).all() for grad in found[1:])


def test_no_rows_have_no_loss():
    softmax, outputs = make_softmax(), make_outputs(0)
    targets = torch.zeros(0, dtype=torch.int64)
    assert softmax.losses(outputs, targets).shape == (0,)
    for loss in (
        softmax.total_loss(outputs, targets),
        softmax.sampled_loss(outputs, targets, draw_negatives(20)),
    ):
        found = gradients(softmax, outputs, loss)
        assert found[0] == 0.0
        assert not any(grad.any() for grad in found[1:])


def error_of_the_mean_gradient(num_negatives, *, is_corrected=True, num_draws=300):
    """Return how far the mean over draws is from the gradients of the full loss, relatively."""
    softmax, targets = make_softmax(), torch.tensor(TARGETS)
    outputs = (0.3 * make_outputs()).detach().requires_grad_()
    sampler = LogUniformSampler(num_words=NUM_WORDS, num_negatives=num_negatives)
    rng = np.random.default_rng(0)
    full = reference(softmax, outputs, TARGETS)[1:]
    sums = [np.zeros_like(grad) for grad in full]
    for _ in range(num_draws):
        drawn = sampler.draw(rng)
        if not is_corrected:
            drawn = Negatives(words=drawn.words, log_expected=0 * drawn.log_expected)
        found = gradients(softmax, outputs, softmax.sampled_loss(outputs, targets, drawn))
        sums = [total + grad for total, grad in zip(sums, found[1:], strict=True)]
    return np.array(
        [
            np.linalg.norm(total / num_draws - grad) / np.linalg.norm(grad)
            for total, grad in zip(sums, full, strict=True)
        ]
    )


@pytest.mark.slow
def test_more_negatives_bring_the_mean_gradient_nearer_to_the_full_one():
    few, some, many = (error_of_the_mean_gradient(number) for number in (20, 60, 150))
    uncorrected = error_of_the_mean_gradient(60, is_corrected=False)
    assert (few > 1.3 * some).all()
    assert (some > 3 * many).all()
    assert (some < 0.12).all()  # measured: 0.09, 0.06, 0.07
    assert (many < 0.03).all()
    assert (uncorrected > 0.15).all()  # so the bound would notice


def test_losses_of_blocks_of_words_are_those_of_all(monkeypatch):
    """With blocks smaller than the vocabulary, and a last one that is not whole."""
    softmax, outputs, targets = make_softmax(), make_outputs(), torch.tensor(TARGETS)
    wanted = softmax.losses(outputs, targets)
    monkeypatch.setattr(word_softmax, "_ROWS", 3)
    monkeypatch.setattr(word_softmax, "_WORDS", 7)
    assert_close(softmax.losses(outputs, targets), wanted, rtol=1e-13, atol=1e-13)
    for num_shared in (1, 7, 150, NUM_WORDS):
        assert_close(
            softmax.losses(outputs, targets, num_shared=num_shared, unknown_id=0),
            merged_losses(softmax, outputs, num_shared=num_shared, unknown_id=0),
            rtol=1e-12,
            atol=1e-12,
        )


def merged_losses(softmax, outputs, *, num_shared, unknown_id):
    """Add up the probabilities that count as the unknown word, word by word."""
    losses = []
    for row, target in zip(softmax.log_probs(outputs).exp().tolist(), TARGETS, strict=True):
        unknown = row[unknown_id] + sum(row[num_shared:])
        is_unknown = target == unknown_id or target >= num_shared
        losses.append(-np.log(unknown if is_unknown else row[target]))
    return torch.tensor(losses, dtype=torch.float64)


def test_new_words_count_as_the_unknown_one():
    softmax, outputs, targets = make_softmax(), make_outputs(), torch.tensor(TARGETS)
    found = softmax.losses(outputs, targets, num_shared=120, unknown_id=3)
    wanted = merged_losses(softmax, outputs, num_shared=120, unknown_id=3)
    assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="num_shared = 2 of 200 words, got unknown_id = 3"):
        softmax.losses(outputs, targets, num_shared=2, unknown_id=3)


@pytest.mark.slow
def test_a_large_vocabulary_needs_little_memory(monkeypatch):
    """Blocks of logits have bounds: those of `losses` whatever the vocabulary."""
    assert choose_rows(1) == choose_rows(8192) == 512
    assert choose_rows(100_000) * 100_000 <= 1 << 24
    assert choose_rows(1_000_000) * 1_000_000 <= 1 << 25
    largest = []
    addmm = torch.addmm
    monkeypatch.setattr(
        torch, "addmm", lambda *a, out: largest.append(out.numel()) or addmm(*a, out=out)
    )
    by_kernel = summed_loss.multiply_rows
    monkeypatch.setattr(
        summed_loss,
        "multiply_rows",
        lambda *a, out, **k: largest.append(out.numel()) or by_kernel(*a, out=out, **k),
    )
    softmax = make_softmax(num_words=30_000, dim=2, dtype=torch.float32)
    outputs = make_outputs(1500, dim=2, dtype=torch.float32)
    softmax.losses(outputs, torch.zeros(1500, dtype=torch.int64))
    assert max(largest) <= 1 << 22
    largest.clear()
    monkeypatch.setattr(summed_loss, "_MAX_LOGITS", 1 << 21)
    softmax.total_loss(outputs, torch.zeros(1500, dtype=torch.int64))
    assert max(largest) <= 1 << 21


def test_one_seed_gives_one_start():
    first, second, other = (WordSoftmax(num_words=500, dim=16) for _ in range(3))
    first.initialize(seed=3)
    second.initialize(3)
    other.initialize(4)
    assert torch.equal(first.weight, second.weight)
    assert not torch.equal(first.weight, other.weight)
    assert first.weight.std().item() == pytest.approx(0.25, rel=0.05)
    assert not first.bias.any()
    assert (first.num_words, first.dim) == (500, 16)


def test_shapes_that_do_not_fit_are_named():
    softmax = make_softmax()
    with pytest.raises(ValueError, match=r"expected outputs \(N, 6\).*got \(8, 5\) and \(8,\)"):
        softmax.losses(make_outputs(dim=5), torch.tensor(TARGETS))
    with pytest.raises(ValueError, match=r"got \(8, 6\) and \(7,\)"):
        softmax.total_loss(make_outputs(), torch.tensor(TARGETS[1:]))
