import numpy as np
import pytest
import torch

from elmore.tasks.networks.biattentive import BiattentiveClassifier, Maxout
from tests.tasks.networks.class_batches import make_batch, make_input, shake, train

LABELS = ("good", "bad", "neither")
SENTENCES = ["abc", "a", "hgfedcba", "dd"]


def build(*, has_elmo=True, **options):
    tokens = make_input(has_elmo=has_elmo)
    return BiattentiveClassifier(tokens=tokens, labels=LABELS, hidden_dim=5, **options)


def softmax(scores):
    shares = np.exp(scores)
    return shares / shares.sum()


def slow_maxout(layer, x):
    """Maxout, a number at a time."""
    maps = layer.linear.weight.numpy() @ x + layer.linear.bias.numpy()
    num = layer.num_pieces
    return np.array([maps[place : place + num].max() for place in range(0, len(maps), num)])


def slow_score(network, sentence):
    """The formulas of the paper for one sentence, but for words and LSTMs."""
    batch = make_batch([sentence])
    (tokens,) = batch.sentences
    x = network.tokens.below(tokens)[0].numpy()
    narrowed = np.maximum(x @ network.narrow.weight.numpy().T + network.narrow.bias.numpy(), 0)
    hidden = network.encoder(torch.from_numpy(narrowed)[None], tokens.lengths)[0].numpy()
    context = np.stack([softmax(hidden @ token) @ hidden for token in hidden])
    compared = np.concatenate([hidden, hidden - context, hidden * context], axis=1)
    integrated = network.integrator(torch.from_numpy(compared)[None], tokens.lengths)
    y = network.tokens.above(integrated, tokens)[0].numpy()
    shares = softmax(y @ network.self_pool.linear.weight[0].numpy())
    pooled = np.concatenate([y.max(axis=0), y.mean(axis=0), y.min(axis=0), shares @ y])
    _, first, _, second, last = network.choose
    chosen = slow_maxout(second, slow_maxout(first, pooled))
    return last.weight.numpy() @ chosen + last.bias.numpy()


@torch.no_grad()
@pytest.mark.parametrize("has_elmo", [False, True])
def test_scores_are_those_of_the_formulas(has_elmo):
    network = shake(build(has_elmo=has_elmo))
    found = network.score(make_batch(SENTENCES))
    for row, sentence in enumerate(SENTENCES):
        np.testing.assert_allclose(found[row], slow_score(network, sentence), rtol=1e-3, atol=1e-4)


def test_maxout_takes_the_largest_of_its_pieces():
    layer = Maxout(input_dim=1, output_dim=2, num_pieces=3)
    with torch.no_grad():
        layer.linear.weight.copy_(torch.tensor([[1.0], [2], [-1], [5], [0], [-7]]))
        layer.linear.bias.zero_()
    assert layer(torch.tensor([[1.0], [-1.0]])).tolist() == [[2, 5], [1, 7]]


@torch.no_grad()
def test_padding_and_batch_mates_change_nothing():
    network = shake(build())
    gold = [2, 0, 1, 1]
    batch = make_batch(SENTENCES, gold=gold)
    wanted, loss = network.predict(batch), network.loss(batch)
    padded = make_batch(SENTENCES, gold=gold, num_behind=3, behind=1e3)
    losses = []
    for row, sentence in enumerate(SENTENCES):
        alone = make_batch([sentence], gold=gold[row : row + 1])
        assert network.predict(alone)[0] == pytest.approx(wanted[row], abs=1e-5)
        assert network.predict(padded)[row] == pytest.approx(wanted[row], abs=1e-5)
        losses.append(network.loss(alone).item())
    assert loss.item() == pytest.approx(np.mean(losses), rel=1e-5)
    assert network.loss(padded).item() == pytest.approx(loss.item(), rel=1e-5)


@torch.no_grad()
def test_predictions_need_no_gold_and_have_all_labels():
    network = shake(build())
    found = network.predict(make_batch(SENTENCES))
    assert found == network.predict(make_batch(SENTENCES, gold=[0, 1, 2, 0]))
    assert [list(each) for each in found] == [list(LABELS)] * len(SENTENCES)
    assert [sum(each.values()) for each in found] == pytest.approx([1.0] * len(SENTENCES))


def test_dropout_is_torchs_own_and_ends_with_training():
    network = build(dropout=0.5)
    batch = make_batch(SENTENCES, gold=[0, 1, 2, 0])
    losses = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        losses.append(network.loss(batch).item())
    assert losses[0] == losses[1] != losses[2]
    network.eval()
    assert network.loss(batch).item() == network.loss(batch).item()


def test_gradients_reach_everything():
    network = shake(build())
    network.loss(make_batch(SENTENCES, gold=[0, 1, 2, 0])).backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad.any(), name


@pytest.mark.slow
def test_the_order_of_tokens_is_learned():
    # The label is whether b comes before c; each bag of tokens is there in both orders.
    generator = np.random.default_rng(0)
    sentences, gold = [], []
    for _ in range(25):
        others = generator.choice(list("adefgh"), size=generator.integers(0, 5)).tolist()
        first, second = sorted(generator.integers(0, len(others) + 1, size=2))
        for number, pair in enumerate(["bc", "cb"]):
            parts = others[:first], pair[0], others[first:second], pair[1], others[second:]
            sentences.append([token for part in parts for token in part])
            gold.append(number)
    network = BiattentiveClassifier(tokens=make_input(), labels=("bc", "cb"), hidden_dim=8)
    batch = make_batch(sentences, gold=gold)
    train(network, batch, num_steps=100)
    with torch.no_grad():
        assert network.score(batch).argmax(dim=-1).tolist() == gold
        assert network.loss(batch) < 0.05
