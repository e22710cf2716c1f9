import numpy as np
import pytest
import torch
from torch.nn import functional

from elmore.tasks.networks.alternating_lstm import AlternatingLSTM, HighwayLSTM

LENGTHS = [3, 5, 1, 4]  # not sorted, as batches are not


def make_lstm(*, num_layers=3, dropout=0.0, seed=0):
    """Return layers with weights large enough for every gate to matter."""
    torch.manual_seed(seed)
    lstm = AlternatingLSTM(input_dim=4, hidden_dim=6, num_layers=num_layers, dropout=dropout)
    for weights in lstm.parameters():
        torch.nn.init.normal_(weights, std=0.7)
    return lstm


def make_sentences(*, seed=1):
    """Return sentences with large numbers behind their ends."""
    x = torch.randn(4, 5, 4, generator=torch.Generator().manual_seed(seed))
    for row, length in enumerate(LENGTHS):
        x[row, length:] = 100.0
    return x, torch.tensor(LENGTHS)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def read_slowly(layer, tokens, *, recurrent=None, kept=1.0):
    """Compute one layer over one sentence (T, D), token by token in the order given."""
    arrays = {name: value.detach().double().numpy() for name, value in layer.named_parameters()}
    recurrent = arrays["lstm.weight_hh_l0"] if recurrent is None else recurrent
    bias = arrays["lstm.bias_ih_l0"] + arrays["lstm.bias_hh_l0"]
    remembered = cell = np.zeros(recurrent.shape[1])
    outputs = []
    for x in tokens:
        gates = arrays["lstm.weight_ih_l0"] @ x + recurrent @ remembered + bias
        enter, forget, new, leave = np.split(gates, 4)
        cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(new)
        remembered = sigmoid(leave) * np.tanh(cell)
        gate = sigmoid(
            arrays["gate.weight"] @ np.concatenate([x, remembered]) + arrays["gate.bias"]
        )
        outputs.append((gate * remembered + (1 - gate) * (arrays["around.weight"] @ x)) * kept)
    return np.array(outputs)


@pytest.mark.parametrize("num_layers", [1, 2, 3, 4])
def test_layers_read_in_turn_as_a_plain_loop_does(num_layers):
    lstm = make_lstm(num_layers=num_layers)
    x, lengths = make_sentences()
    found = lstm(x, lengths).detach().numpy()
    for row, length in enumerate(LENGTHS):
        rows = x[row, :length].double().numpy()
        for number, layer in enumerate(lstm.layers):
            step = -1 if number % 2 else 1
            rows = read_slowly(layer, rows[::step])[::step]
        np.testing.assert_allclose(found[row, :length], rows, rtol=1e-4, atol=1e-5)
        assert not found[row, length:].any()


def test_neighbors_and_padding_change_nothing():
    lstm = make_lstm(num_layers=4)
    x, lengths = make_sentences()
    together = lstm(x, lengths)
    wider = lstm(torch.cat([x, torch.full((4, 2, 4), -50.0)], dim=1), lengths)
    assert wider.shape == (4, 7, 6)
    torch.testing.assert_close(wider[:, :5], together)
    assert not wider[:, 5:].any()
    for row, length in enumerate(LENGTHS):
        alone = lstm(x[row : row + 1, :length], lengths[row : row + 1])
        torch.testing.assert_close(alone[0], together[row, :length])


def test_the_first_layer_sees_the_left_and_the_second_both_sides():
    x, lengths = make_sentences()
    changed = x.clone()
    changed[1, 2] += 1.0
    for num_layers, touched in [(1, [2, 3, 4]), (2, [0, 1, 2, 3, 4])]:
        lstm = make_lstm(num_layers=num_layers)
        differs = (lstm(x, lengths) - lstm(changed, lengths)).abs().amax(dim=-1) > 1e-6
        assert differs.nonzero().tolist() == [[1, place] for place in touched]


def test_dropout_is_the_same_for_all_tokens_of_a_sentence():
    lstm = make_lstm(num_layers=2, dropout=0.5)
    x, lengths = make_sentences()
    is_dropped = lstm(x, lengths) == 0
    for row, length in enumerate(LENGTHS):
        assert (is_dropped[row, :length] == is_dropped[row, 0]).all()
    assert is_dropped[:, 0].any()
    assert not (is_dropped[:, 0] == is_dropped[0, 0]).all()


def test_dropout_takes_recurrent_weights_and_numbers_on_the_way_up():
    torch.manual_seed(0)
    layer = HighwayLSTM(input_dim=4, hidden_dim=6, dropout=0.4)
    x = torch.randn(5, 4)
    torch.manual_seed(7)
    (found,) = layer(x.unsqueeze(0))
    torch.manual_seed(7)
    recurrent = functional.dropout(layer.lstm.weight_hh_l0, 0.4)
    kept = torch.empty(6).bernoulli_(0.6) / 0.6
    wanted = read_slowly(
        layer,
        x.double().numpy(),
        recurrent=recurrent.detach().double().numpy(),
        kept=kept.double().numpy(),
    )
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-4, atol=1e-5)
    found.square().sum().backward()
    gradient = layer.lstm.weight_hh_l0.grad
    assert not gradient[recurrent == 0].any()
    assert gradient.any()


def test_training_leaves_no_thinned_weights_behind():
    lstm = make_lstm(dropout=0.5)
    x, lengths = make_sentences()
    before = lstm.eval()(x, lengths)
    lstm.train()(x, lengths).sum().backward()
    assert torch.equal(lstm.eval()(x, lengths), before)
    with torch.no_grad():
        lstm.layers[0].lstm.weight_hh_l0.mul_(2)
    assert not torch.equal(lstm(x, lengths), before)


def test_one_seed_drops_the_same_and_another_does_not():
    lstm = make_lstm(dropout=0.5)
    x, lengths = make_sentences()
    outputs = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        outputs.append(lstm(x, lengths))
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_gradients_reach_all_weights_and_no_padding(dropout):
    lstm = make_lstm(dropout=dropout)
    x, lengths = make_sentences()
    x.requires_grad_()
    lstm(x, lengths).square().sum().backward()
    for name, weights in lstm.named_parameters():
        assert weights.grad.any(), name
    for row, length in enumerate(LENGTHS):
        assert x.grad[row, :length].any()
        assert not x.grad[row, length:].any()
