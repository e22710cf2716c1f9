"""What elmore is measured against must compute the same thing."""

import pytest
import torch
from torch.testing import assert_close

from benchmarks.peers_method import PeersMethod, pad_sentences
from tests import tiny

SENTENCES = [
    ["bad", "cafe"],
    ["a", "longer", "sentence", "of", "seven", "tokens", "!"],
    ["a"],
    ["five", "and", "all", "incomprehensibilities", "."],
]


@pytest.mark.slow
@pytest.mark.parametrize("output_clip", [3.0, 0.5, None])  # outputs here rarely come up to 3
def test_peers_method_gives_the_layers_of_the_bilm(output_clip):
    model = tiny.model(tiny.byte_config(output_clip=output_clip))
    char_ids, lengths = pad_sentences(SENTENCES, model.speller)
    with torch.no_grad():
        padded = PeersMethod(model.bilm)(char_ids, lengths)
        wanted = model.bilm(model.batch(SENTENCES)).layers
    is_token = torch.arange(char_ids.shape[1]) < lengths[:, None]
    assert_close(padded[:, is_token], wanted, atol=1e-5, rtol=0)


def test_peers_method_learns_as_the_bilm_does():
    model = tiny.model()
    peers = PeersMethod(model.bilm)
    char_ids, lengths = pad_sentences(SENTENCES, model.speller)
    is_token = torch.arange(char_ids.shape[1]) < lengths[:, None]
    peers(char_ids, lengths)[-1][is_token].sin().sum().backward()
    model.bilm(model.batch(SENTENCES)).layers[-1].sin().sum().backward()
    for lstm, of_peers in zip(model.bilm.forward_lm, peers.forward_lm, strict=True):
        assert_close(of_peers.state_weight.grad, lstm.state_weight.grad, atol=1e-4, rtol=1e-4)
    embedding = model.bilm.token_encoder.characters.embedding.weight.grad
    assert_close(peers.token_encoder.characters.embedding.grad[1:], embedding, atol=1e-4, rtol=1e-4)
