import torch
from torch.testing import assert_close

from elmore.embed.embedder import Embedder
from elmore.embed.layer_source import LiveLayers
from elmore.tasks.inputs.trained_layers import TrainedLayers
from tests import tiny

SENTENCES = [["a", "bad", "cafe"], ["a"], ["dada", "a"]]


def test_before_it_learns_its_layers_are_those_of_a_frozen_bilm():
    trained = TrainedLayers(tiny.model())
    live = LiveLayers(Embedder(tiny.model()), "f32")
    assert (trained.num_layers, trained.layer_dim) == (live.num_layers, live.layer_dim)
    assert_close(trained.find(SENTENCES).detach(), live.find(SENTENCES))


def test_gradients_reach_all_weights():
    layers = TrainedLayers(tiny.model(scale=0.4))
    layers.find(SENTENCES).square().sum().backward()
    assert all(weight.grad.any() for group in layers.groups() for weight in group)


def test_weights_that_changed_are_used_with_and_without_gradients():
    layers = TrainedLayers(tiny.model())
    with torch.no_grad():
        before = layers.find(SENTENCES)
        for weight in layers.parameters():
            weight.mul_(0.5)
        after = layers.find(SENTENCES)
    assert not torch.equal(before, after)
    assert_close(layers.find(SENTENCES).detach(), after)


def test_a_sentence_of_its_own_has_the_same_layers():
    layers = TrainedLayers(tiny.model())
    together = layers.find(SENTENCES)
    for place, sentence in enumerate(SENTENCES):
        alone = layers.find([sentence])
        assert_close(alone[:, 0], together[:, place, : len(sentence)])
        assert not together[:, place, len(sentence) :].any()
