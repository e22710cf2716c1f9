"""The peers' way of training must compute the loss that the plain trainer and elmore compute."""

import pytest
from torch.testing import assert_close

from benchmarks.peers_trainer import PeersTrainer
from benchmarks.plain_trainer import PlainTrainer
from tests.benchmarks.test_plain_trainer import make_negatives, make_parts, make_window, to_plain

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported")


def test_loss_and_gradients_of_a_first_window_are_those_of_the_plain_trainer():
    bilm, softmax = make_parts()
    window, negatives = make_window(0), to_plain(make_negatives(0))
    peers = PeersTrainer(bilm, softmax, dropout=0.0)
    plain = PlainTrainer(bilm, softmax, dropout=0.0)
    losses = [trainer.loss(window, negatives) for trainer in (peers, plain)]
    assert_close(losses[0], losses[1], atol=1e-5, rtol=1e-5)
    for loss in losses:
        loss.backward()
    encoder = peers.network.token_encoder
    wanted = plain.network.token_encoder.embedding.weight.grad
    assert_close(encoder.characters.embedding.grad[1:], wanted, atol=1e-5, rtol=1e-5)
    for lstms, direction in (
        (peers.network.forward_lm, plain.network.forward_lm),
        (peers.network.backward_lm, plain.network.backward_lm),
    ):
        for lstm, layer in zip(lstms, direction.layers, strict=True):
            gradient = layer.weight_hh_l0.grad
            assert_close(lstm.state_weight.grad, gradient, atol=1e-5, rtol=1e-5)


def test_steps_lower_the_loss():
    bilm, softmax = make_parts()
    trainer = PeersTrainer(bilm, softmax, dropout=0.0)
    window, negatives = make_window(0), to_plain(make_negatives(0))
    losses = [trainer.step(window, negatives) for _ in range(20)]
    assert losses[-1] < 0.6 * losses[0]
