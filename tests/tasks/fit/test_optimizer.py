"""Who learns when, and how fast."""

import pytest
import torch
from torch import nn

from elmore.tasks.fit.optimizer import TaskOptimizer
from elmore.tasks.fit.settings import ElmoSettings, TaskTrainingSettings
from elmore.tasks.inputs.trained_layers import TrainedLayers
from tests import tiny

SENTENCES = [["a", "bad", "cafe"], ["a"]]


class Sum(nn.Module):
    """The smallest network: it weighs all numbers of all layers."""

    def __init__(self, layers):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(layers.num_layers))

    def loss(self, found):
        return (self.weight[:, None, None, None] * found).square().mean()


def make(**elmo):
    layers = TrainedLayers(tiny.model(scale=0.4))
    network = Sum(layers)
    training = TaskTrainingSettings(learning_rate=0.01)
    optimizer = TaskOptimizer(network, layers, training=training, elmo=ElmoSettings(**elmo))
    return layers, network, optimizer


def list_learning(layers):
    return [all(weight.requires_grad for weight in group) for group in layers.groups()]


def test_groups_have_each_weight_of_the_bilm_once_from_the_top_down():
    layers = TrainedLayers(tiny.model())
    groups = list(layers.groups())
    found = [id(weight) for group in groups for weight in group]
    assert sorted(found) == sorted(map(id, layers.elmo.bilm.parameters()))
    bilm = layers.elmo.bilm
    tops = {
        id(weight) for lm in (bilm.forward_lm, bilm.backward_lm) for weight in lm[-1].parameters()
    }
    assert {id(weight) for weight in groups[0]} == tops
    assert {id(weight) for weight in groups[-1]} == set(map(id, bilm.token_encoder.parameters()))


def test_layers_join_one_by_one_from_the_top():
    layers, network, optimizer = make(unfreeze_epochs=0.5)
    for epoch, number in ((0.0, 0), (0.49, 0), (0.5, 1), (1.2, 2), (1.5, 3), (9.0, 3)):
        assert optimizer.unfreeze(epoch) == number
        assert list_learning(layers) == [depth < number for depth in range(3)]
        before = [weight.detach().clone() for weight in layers.parameters()]
        optimizer.step(network.loss(layers.find(SENTENCES)), rate_share=1.0)
        changed = {
            id(weight)
            for weight, old in zip(layers.parameters(), before, strict=True)
            if not torch.equal(weight, old)
        }
        groups = list(layers.groups())
        assert changed <= {id(weight) for group in groups[:number] for weight in group}
        assert all(any(id(weight) in changed for weight in group) for group in groups[:number])


def test_all_learn_at_once_without_an_interval():
    layers, _, optimizer = make(unfreeze_epochs=0.0)
    assert optimizer.unfreeze(0.0) == 3
    assert all(list_learning(layers))


def test_rates_fall_from_layer_to_layer():
    layers, network, optimizer = make(unfreeze_epochs=0.0, learning_rate=0.004, rate_decay=2.0)
    optimizer.unfreeze(0.0)
    before = [[weight.detach().clone() for weight in group] for group in layers.groups()]
    optimizer.step(network.loss(layers.find(SENTENCES)), rate_share=0.5)
    moved = [
        max((weight - old).abs().max().item() for weight, old in zip(group, olds, strict=True))
        for group, olds in zip(layers.groups(), before, strict=True)
    ]
    # Adam's first step is as long as its rate.
    assert moved == pytest.approx([0.002, 0.001, 0.0005], rel=0.01)
    assert (network.weight - 1).abs().max().item() == pytest.approx(0.005, rel=0.01)


def test_long_gradients_are_shortened_together():
    layers, network, optimizer = make(unfreeze_epochs=0.0)
    optimizer.unfreeze(0.0)
    optimizer.step(1e6 * network.loss(layers.find(SENTENCES)), rate_share=1.0)
    weights = [network.weight, *layers.parameters()]
    norm = torch.stack([weight.grad.norm() for weight in weights]).norm().item()
    assert norm == pytest.approx(TaskTrainingSettings().max_gradient_norm, rel=1e-4)


def test_what_an_optimizer_remembers_can_be_loaded():
    finals = []
    for is_interrupted in (False, True):
        layers, network, optimizer = make(unfreeze_epochs=1.0)
        for step in range(4):
            if step == 2 and is_interrupted:
                kept = {name: tensor.clone() for name, tensor in optimizer.tensors().items()}
                optimizer = TaskOptimizer(
                    network,
                    layers,
                    training=TaskTrainingSettings(learning_rate=0.01),
                    elmo=ElmoSettings(unfreeze_epochs=1.0),
                )
                optimizer.load(kept)
            optimizer.unfreeze(step)
            optimizer.step(network.loss(layers.find(SENTENCES)), rate_share=1.0)
        finals.append([weight.detach() for weight in (*network.parameters(), *layers.parameters())])
    assert all(torch.equal(one, other) for one, other in zip(*finals, strict=True))
