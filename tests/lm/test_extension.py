"""New words change nothing of what a softmax says until they are trained."""

import numpy as np
import pytest
import torch

from elmore.errors import ModelError
from elmore.lm.extension import change_words, check_extension, extend_softmax
from elmore.model.word_softmax import WordSoftmax

OLD = ["<S>", "</S>", "<UNK>", "the", "cat"]
NEW = [*OLD, "corpus", "token"]
COUNTS = np.array([9, 9, 4, 100, 2, 12, 8])


def softmaxes() -> tuple[WordSoftmax, WordSoftmax]:
    old = WordSoftmax(num_words=5, dim=3)
    old.initialize(seed=0)
    with torch.no_grad():
        old.bias.copy_(torch.arange(5.0))
    return old.double(), extend_softmax(old, words=NEW, counts=COUNTS)


def test_old_words_keep_their_probabilities():
    old, new = softmaxes()
    outputs = torch.randn(4, 3, dtype=torch.float64)
    before, after = old.log_probs(outputs), new.double().log_probs(outputs)
    known = [0, 1, 3, 4]
    torch.testing.assert_close(after[:, known], before[:, known], atol=1e-6, rtol=0)
    together = after[:, [2, 5, 6]].logsumexp(dim=1)
    torch.testing.assert_close(together, before[:, 2], atol=1e-6, rtol=0)


def test_new_words_share_what_was_unknown_by_their_counts():
    _, new = softmaxes()
    log_probs = new.log_probs(torch.randn(1, 3))[0]
    shares = (log_probs[[2, 5, 6]] - log_probs[[2, 5, 6]].logsumexp(dim=0)).exp()
    expected = torch.tensor([4.0, 12.0, 8.0], dtype=torch.float64) / 24
    torch.testing.assert_close(shares, expected, atol=1e-5, rtol=0)


def test_merging_the_new_words_gives_the_old_perplexity_back():
    old, new = softmaxes()
    outputs = torch.randn(6, 3, dtype=torch.float64)
    targets = torch.tensor([0, 3, 5, 6, 2, 4])
    merged = new.double().losses(outputs, targets, num_shared=5, unknown_id=2)
    expected = old.losses(outputs, torch.tensor([0, 3, 2, 2, 2, 4]))
    torch.testing.assert_close(merged, expected, atol=1e-6, rtol=0)


def test_without_new_words_it_is_the_same_softmax():
    old, _ = softmaxes()
    same = extend_softmax(old, words=OLD, counts=COUNTS[:5])
    assert torch.equal(same.weight, old.weight)
    assert torch.equal(same.bias, old.bias)


def test_words_may_change_places_and_be_left_out():
    old, _ = softmaxes()
    words = ["<S>", "</S>", "token", "cat", "<UNK>", "corpus"]  # without "the"
    counts = np.array([9, 9, 8, 2, 4, 12])
    changed = change_words(old, old_words=OLD, words=words, counts=counts)
    outputs = torch.randn(4, 3, dtype=torch.float64)
    before = old.log_probs(outputs)
    logits = outputs @ changed.weight.t() + changed.bias
    old_logits = outputs @ old.weight.t() + old.bias
    torch.testing.assert_close(logits[:, [0, 1, 3]], old_logits[:, [0, 1, 4]])
    together = logits[:, [2, 4, 5]].logsumexp(dim=1)
    torch.testing.assert_close(together, old_logits[:, 2], atol=1e-6, rtol=0)
    shares = (logits[0, [4, 5, 2]] - together[0]).exp()
    expected = torch.tensor([4.0, 12.0, 8.0], dtype=torch.float64) / 24
    torch.testing.assert_close(shares, expected, atol=1e-5, rtol=0)
    # Only the word that was left out is missing from the denominator.
    kept = torch.cat([before[:, :3], before[:, 4:]], dim=1).logsumexp(dim=1)
    after = changed.log_probs(outputs)
    torch.testing.assert_close(after[:, 3], before[:, 4] - kept, atol=1e-6, rtol=0)


def test_a_vocabulary_of_another_model_is_refused():
    check_extension(OLD, NEW, corpus="c")
    with pytest.raises(ModelError, match="--extend"):
        check_extension(OLD, ["<S>", "</S>", "<UNK>", "cat", "the"], corpus="c")
