import numpy as np
import pytest
import torch

from elmore.tasks.networks.esim import ESIM
from tests.tasks.networks.class_batches import make_batch, make_input, shake, train

LABELS = ("follows", "differs", "contradicts")
PREMISES = ["abc", "a", "hgfedcba", "dd"]
HYPOTHESES = ["ab", "hgfed", "c", "dcba"]


def build(*, has_elmo=True, **options):
    return ESIM(tokens=make_input(has_elmo=has_elmo), labels=LABELS, hidden_dim=5, **options)


def slow_attend(queries, others):
    rows = []
    for query in queries:
        shares = np.exp(others @ query)
        rows.append(shares @ others / shares.sum())
    return np.stack(rows)


def linear(layer, x):
    return x @ layer.weight.numpy().T + layer.bias.numpy()


def slow_score(network, premise, hypothesis):
    """The formulas of the paper for one pair, but for words and LSTMs."""
    pair = make_batch([premise], [hypothesis]).sentences
    encoded = []
    for tokens in pair:
        hidden = network.encoder(network.tokens.below(tokens), tokens.lengths)
        encoded.append(network.tokens.above(hidden, tokens)[0].numpy())
    pooled = []
    for x, other, tokens in zip(encoded, encoded[::-1], pair, strict=True):
        aligned = slow_attend(x, other)
        compared = np.concatenate([x, aligned, x - aligned, x * aligned], axis=1)
        narrowed = np.maximum(linear(network.narrow, compared), 0)
        composed = network.composer(torch.from_numpy(narrowed)[None], tokens.lengths)[0].numpy()
        pooled += [composed.mean(axis=0), composed.max(axis=0)]
    _, first, _, _, last = network.choose
    return linear(last, np.maximum(linear(first, np.concatenate(pooled)), 0))


@torch.no_grad()
@pytest.mark.parametrize("has_elmo", [False, True])
def test_scores_are_those_of_the_formulas(has_elmo):
    network = shake(build(has_elmo=has_elmo))
    found = network.score(make_batch(PREMISES, HYPOTHESES))
    for row, pair in enumerate(zip(PREMISES, HYPOTHESES, strict=True)):
        np.testing.assert_allclose(found[row], slow_score(network, *pair), rtol=1e-3, atol=1e-4)


@torch.no_grad()
def test_padding_and_batch_mates_change_nothing():
    network = shake(build())
    gold = [2, 0, 1, 1]
    batch = make_batch(PREMISES, HYPOTHESES, gold=gold)
    wanted, loss = network.predict(batch), network.loss(batch)
    padded = make_batch(PREMISES, HYPOTHESES, gold=gold, num_behind=3, behind=1e3)
    losses = []
    for row, (premise, hypothesis) in enumerate(zip(PREMISES, HYPOTHESES, strict=True)):
        alone = make_batch([premise], [hypothesis], gold=gold[row : row + 1])
        assert network.predict(alone)[0] == pytest.approx(wanted[row], abs=1e-5)
        assert network.predict(padded)[row] == pytest.approx(wanted[row], abs=1e-5)
        losses.append(network.loss(alone).item())
    assert loss.item() == pytest.approx(np.mean(losses), rel=1e-5)
    assert network.loss(padded).item() == pytest.approx(loss.item(), rel=1e-5)


@torch.no_grad()
def test_predictions_need_no_gold_and_which_text_is_first_matters():
    network = shake(build())
    found = network.predict(make_batch(PREMISES, HYPOTHESES))
    assert found == network.predict(make_batch(PREMISES, HYPOTHESES, gold=[0, 1, 2, 0]))
    assert [list(each) for each in found] == [list(LABELS)] * len(PREMISES)
    swapped = network.predict(make_batch(HYPOTHESES, PREMISES))
    assert found[0] != pytest.approx(swapped[0], abs=1e-3)


def test_dropout_is_torchs_own_and_ends_with_training():
    network = build(dropout=0.5)
    batch = make_batch(PREMISES, HYPOTHESES, gold=[0, 1, 2, 0])
    losses = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        losses.append(network.loss(batch).item())
    assert losses[0] == losses[1] != losses[2]
    network.eval()
    assert network.loss(batch).item() == network.loss(batch).item()


def test_gradients_reach_everything():
    network = shake(build())
    network.loss(make_batch(PREMISES, HYPOTHESES, gold=[0, 1, 2, 0])).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad.any(), name


def test_gradients_reach_both_texts():
    batch = make_batch(["ab"], ["cd"], gold=[0])
    for tokens in batch.sentences:
        tokens.layers.requires_grad_()
    shake(build()).loss(batch).backward()
    assert all(tokens.layers.grad.any() for tokens in batch.sentences)


@pytest.mark.slow
def test_what_two_texts_share_is_learned():
    # A hypothesis has one token of its premise or one that it lacks, with or without "not".
    generator = np.random.default_rng(0)
    premises, hypotheses, gold = [], [], []
    for number in range(50):
        shuffled = generator.permutation(list("abcdefgh")).tolist()
        length = int(generator.integers(1, 6))
        premises.append(shuffled[:length])
        token = shuffled[0 if number % 3 != 1 else -1]
        hypotheses.append(["not", token] if number % 3 == 2 else [token])
        gold.append(number % 3)
    network = ESIM(tokens=make_input(), labels=LABELS, hidden_dim=8)
    batch = make_batch(premises, hypotheses, gold=gold)
    train(network, batch, num_steps=150)
    with torch.no_grad():
        assert network.score(batch).argmax(dim=-1).tolist() == gold
        assert network.loss(batch) < 0.05
