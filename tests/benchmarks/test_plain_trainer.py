"""The plain torch trainer must start as the same function as elmore's, and learn the same."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from benchmarks.plain_trainer import (
    Method,
    PlainNegatives,
    PlainTrainer,
    PlainWindow,
    clip_gradients,
)
from elmore.model.sampling import LogUniformSampler
from elmore.model.state import BiLMState
from elmore.model.windows import WindowReader
from elmore.model.word_softmax import WordSoftmax
from elmore.text.batches import TokenIds
from tests import tiny

NUM_STEPS, NUM_ROWS, NUM_WORDS, NUM_DISTINCT = 4, 3, 11, 6
# Torch says once that it has no quick way for such a layer, and takes the plain one.
pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported")
UNBOUNDED = {"cell_clip": None, "output_clip": None}


def make_window(seed: int) -> PlainWindow:
    generator = torch.Generator().manual_seed(seed)

    def draw(below: int, *shape: int) -> torch.Tensor:
        return torch.randint(below, shape, generator=generator)

    return PlainWindow(
        char_ids=draw(261, NUM_DISTINCT, 9),
        inputs=draw(NUM_DISTINCT, 2, NUM_STEPS, NUM_ROWS),
        targets=draw(NUM_WORDS, 2, NUM_STEPS, NUM_ROWS),
        has_target=draw(4, NUM_STEPS, NUM_ROWS) > 0,
    )


def make_negatives(seed: int):
    sampler = LogUniformSampler(num_words=NUM_WORDS, num_negatives=5)
    return sampler.draw(np.random.default_rng(seed))


def make_parts(**lstm):
    bilm = tiny.model(tiny.byte_config(**lstm), scale=0.4).bilm
    softmax = WordSoftmax(num_words=NUM_WORDS, dim=5)
    with torch.no_grad():
        softmax.weight.normal_(generator=torch.Generator().manual_seed(1))
        softmax.bias.normal_(generator=torch.Generator().manual_seed(2))
    return bilm, softmax


def elmore_loss(bilm, softmax, window, negatives, state):
    """The window read as sentences by the embedding path, a direction at a time."""
    tokens = bilm.token_encoder(window.char_ids, None)
    lengths = torch.full((NUM_ROWS,), NUM_STEPS)
    total, hidden, cell = 0, [], []
    for number in range(2):
        # The backward LM reads a sentence from its end, so it is given the window turned round.
        rows = window.inputs[number].t() if number == 0 else window.inputs[number].t().flip(1)
        output = bilm.contextualize(tokens[rows.flatten()], lengths, state)
        half = output.layers[-1].chunk(2, dim=1)[number].unflatten(0, (NUM_ROWS, NUM_STEPS))
        half = half if number == 0 else half.flip(1)
        outputs = half.transpose(0, 1)[window.has_target]
        targets = window.targets[number][window.has_target]
        total = total + softmax.sampled_loss(outputs, targets, negatives)
        hidden.append(output.state.hidden[number])
        cell.append(output.state.cell[number])
    last = BiLMState(hidden=torch.stack(hidden), cell=torch.stack(cell)).detach()
    return total / 2 / NUM_ROWS, last


def to_plain(negatives) -> PlainNegatives:
    return PlainNegatives(words=negatives.words, log_expected=negatives.log_expected)


@pytest.mark.slow
@pytest.mark.parametrize("bounds", [UNBOUNDED, {}])  # bounds of 3 are not reached here
def test_losses_and_gradients_are_those_of_elmore_window_after_window(bounds):
    bilm, softmax = make_parts(**bounds)
    trainer = PlainTrainer(bilm, softmax, dropout=0.0)
    state = bilm.initial_state(NUM_ROWS)
    for seed in range(2):  # the second window shows that the state is carried
        window, negatives = make_window(seed), make_negatives(seed)
        bilm.zero_grad()
        softmax.zero_grad()
        for weight in trainer.weights:
            weight.grad = None
        wanted, state = elmore_loss(bilm, softmax, window, negatives, state)
        wanted.backward()
        loss = trainer.loss(window, to_plain(negatives))
        loss.backward()
        assert_close(loss, wanted, atol=1e-5, rtol=1e-5)
    # Gradients go the way of weights: put in their place, they are copied to elmore's layout.
    for weight in trainer.weights:
        weight.data = weight.grad.to_dense()
    of_bilm, of_softmax = copy.deepcopy(bilm), copy.deepcopy(softmax)
    trainer.copy_to(of_bilm, of_softmax)
    for ours, theirs in ((bilm, of_bilm), (softmax, of_softmax)):
        for name, weight in ours.named_parameters():
            gradient = weight.grad.to_dense()
            assert gradient.abs().max() > 0
            assert_close(theirs.get_parameter(name).data, gradient, atol=1e-5, rtol=1e-5)


def test_weights_survive_the_way_there_and_back():
    bilm, softmax = make_parts()
    trainer = PlainTrainer(bilm, softmax)
    others = tiny.model(seed=7).bilm, WordSoftmax(num_words=NUM_WORDS, dim=5)
    trainer.copy_to(*others)
    for ours, theirs in zip((bilm, softmax), others, strict=True):
        for name, weight in ours.named_parameters():
            assert_close(theirs.get_parameter(name), weight, atol=0, rtol=0)


@pytest.mark.parametrize("method", Method)
def test_steps_lower_the_loss_of_a_window_seen_again(method):
    bilm, softmax = make_parts()
    rate = 0.2 if method is Method.ADAGRAD else 0.01
    trainer = PlainTrainer(bilm, softmax, method=method, learning_rate=rate, dropout=0.0)
    losses = [trainer.step(make_window(0), to_plain(make_negatives(0))) for _ in range(30)]
    assert losses[-1] < 0.5 * losses[0]


def test_the_first_step_of_adagrad_is_that_of_bilm_tf():
    bilm, softmax = make_parts()
    trainer = PlainTrainer(bilm, softmax, dropout=0.0, max_gradient_norm=0.5)
    before = [weight.detach().clone() for weight in trainer.weights]
    trainer.loss(make_window(0), to_plain(make_negatives(0))).backward()
    gradients = [weight.grad.to_dense().clone() for weight in trainer.weights]
    norm = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    assert norm > 0.5
    again = PlainTrainer(bilm, softmax, dropout=0.0, max_gradient_norm=0.5)
    again.step(make_window(0), to_plain(make_negatives(0)))
    for old, new, gradient in zip(before, again.weights, gradients, strict=True):
        clipped = gradient * 0.5 / norm
        wanted = old - 0.2 * clipped / (1 + clipped.square()).sqrt()
        assert_close(new.data, wanted, atol=1e-6, rtol=1e-5)


class GivenMask(nn.Module):
    """Dropout whose factors are given, one a call."""

    def __init__(self, masks) -> None:
        super().__init__()
        self.masks = iter(masks)

    def forward(self, x):
        return x * next(self.masks)


def test_dropout_is_where_elmore_has_it():
    bilm, softmax = make_parts()
    window, negatives = make_window(0), make_negatives(0)
    masks = 2.0 * torch.randint(2, (2, 3, NUM_STEPS * NUM_ROWS, 5))  # direction, place
    tokens = TokenIds(char_ids=window.char_ids, word_ids=None)
    outputs, _ = WindowReader(bilm)(
        tokens, window.inputs, bilm.initial_state(NUM_ROWS), lambda d, place: masks[d, place]
    )
    wanted = softmax.sampled_loss(
        outputs[:, window.has_target.flatten()].flatten(0, 1),
        window.targets[:, window.has_target].flatten(),
        negatives,
    )
    trainer = PlainTrainer(bilm, softmax)
    by_place = masks.unflatten(2, (NUM_STEPS, NUM_ROWS))
    trainer.network.forward_lm.dropout = GivenMask(by_place[0, :2])
    trainer.network.backward_lm.dropout = GivenMask(by_place[1, :2])
    trainer.output_dropout = GivenMask(by_place[:, 2, window.has_target])
    loss = trainer.loss(window, to_plain(negatives))
    assert_close(loss, wanted / 2 / NUM_ROWS, atol=1e-5, rtol=1e-5)


def test_short_gradients_are_left_alone():
    weight = torch.nn.Parameter(torch.zeros(2))
    weight.grad = torch.tensor([3.0, 4.0])
    clip_gradients([weight], max_norm=10.0)
    assert_close(weight.grad, torch.tensor([3.0, 4.0]))
    clip_gradients([weight], max_norm=1.0)
    assert_close(weight.grad, torch.tensor([0.6, 0.8]))
