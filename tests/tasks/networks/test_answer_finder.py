import math
import random

import pytest
import torch
from torch.testing import assert_close

from elmore.tasks.inputs.char_filters import CharFilters
from elmore.tasks.inputs.elmo_vectors import ElmoVectors
from elmore.tasks.inputs.token_batch import NUM_SPECIAL_ROWS, TokenBatcher
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.networks.answer_finder import (
    NO_SPAN,
    AnswerFinder,
    FoundSpan,
    answer_losses,
    find_best_spans,
)
from elmore.tasks.task import TaskBatch

WORDS = [f"w{number}" for number in range(24)]
NUM_LAYERS, LAYER_DIM = 3, 4


def make_layers(tokens):
    """Stand-ins for a biLM's layers: numbers that depend on the words and their places."""
    numbers = torch.arange(1.0, 1 + NUM_LAYERS * LAYER_DIM).view(NUM_LAYERS, 1, 1, LAYER_DIM)
    places = torch.arange(tokens.words.shape[1]).view(1, 1, -1, 1)
    return torch.sin(numbers * (tokens.words[None, :, :, None] + 0.3 * places))


def make_batch(passages, questions, spans=None, *, has_layers=True):
    """Put examples together; `spans` are tokens[start:end], some an example."""
    batcher = TokenBatcher(words=WORDS)
    sentences = tuple(batcher.make(role) for role in (passages, questions))
    if has_layers:
        sentences = tuple(tokens.with_layers(make_layers(tokens)) for tokens in sentences)
    edges = None
    if spans is not None:
        edges = torch.full((len(spans), max(1, *(len(each) for each in spans)), 2), NO_SPAN)
        for row, each in enumerate(spans):
            for place, (start, end) in enumerate(each):
                edges[row, place] = torch.tensor([start, end - 1])
    return TaskBatch(sentences=sentences, features=edges)


def make_network(*, has_elmo=True, hidden_dim=6, seed=0, **settings):
    torch.manual_seed(seed)
    elmo = {"num_layers": NUM_LAYERS, "layer_dim": LAYER_DIM, "dropout": 0.0}
    tokens = TokenInput(
        words=torch.randn(NUM_SPECIAL_ROWS + len(WORDS), 8),
        characters=CharFilters(num_filters=3),
        below=ElmoVectors(**elmo) if has_elmo else None,
        above=ElmoVectors(**elmo) if has_elmo else None,
    )
    return AnswerFinder(tokens=tokens, hidden_dim=hidden_dim, **settings)


PASSAGES = [["w1"], [f"w{number}" for number in range(9)], ["w3", "w4", "new", "w3"]]
QUESTIONS = [["w2", "w3", "w1"], ["w4"], ["new", "?"]]
SPANS = [[(0, 1)], [(2, 5), (7, 9)], [(0, 1), (3, 4), (0, 4)]]


def make_logs(generator, *lengths):
    """Log probabilities of some passages side by side; -inf behind an end."""
    scores = torch.randn(len(lengths), max(lengths), generator=generator) * 2
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return scores.masked_fill(~mask, -torch.inf).log_softmax(dim=-1)


@pytest.mark.parametrize("max_tokens", [1, 2, 3, 8, 100])
def test_spans_found_are_the_best_of_all_spans(max_tokens):
    generator = torch.Generator().manual_seed(max_tokens)
    for _ in range(20):
        lengths = torch.randint(1, 12, (5,), generator=generator).tolist()
        start_logs, last_logs = (make_logs(generator, *lengths) for _ in range(2))
        found = find_best_spans(start_logs, last_logs, max_tokens=max_tokens)
        for row, length in enumerate(lengths):
            wanted_log, wanted = max(
                (float(start_logs[row, start] + last_logs[row, last]), (start, last + 1))
                for start in range(length)
                for last in range(start, min(length, start + max_tokens))
            )
            assert (found[row].start, found[row].end) == wanted
            assert found[row].log_probability == pytest.approx(wanted_log)


def test_of_equal_spans_the_first_and_shortest_is_found():
    equal = torch.full((1, 4), -math.log(4))
    (found,) = find_best_spans(equal, equal, max_tokens=3)
    assert found == FoundSpan(start=0, end=1, log_probability=pytest.approx(-2 * math.log(4)))


def test_losses_are_those_of_the_formula():
    generator = torch.Generator().manual_seed(0)
    start_logs, last_logs = (make_logs(generator, 1, 9, 4) for _ in range(2))
    edges = make_batch(PASSAGES, QUESTIONS, spans=SPANS).features
    found = answer_losses(start_logs, last_logs, edges=edges)
    for row, spans in enumerate(SPANS):
        likelihood = sum(
            math.exp(start_logs[row, start]) * math.exp(last_logs[row, end - 1])
            for start, end in spans
        )
        assert float(found[row]) == pytest.approx(-math.log(likelihood), abs=1e-6)


def test_an_example_without_a_span_has_no_loss_and_a_finite_gradient():
    network = make_network(dropout=0.0)
    batch = make_batch(PASSAGES, QUESTIONS, spans=[[], [(2, 5)], []])
    network.loss(batch).backward()
    gradients = [weights.grad for weights in network.parameters() if weights.grad is not None]
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    alone = network.loss(make_batch(PASSAGES[1:2], QUESTIONS[1:2], spans=[[(2, 5)]]))
    assert_close(network.loss(batch), alone / 3)
    assert network.loss(make_batch(PASSAGES, QUESTIONS, spans=[[], [], []])).item() == 0


@pytest.mark.parametrize("has_elmo", [True, False])
def test_the_rest_of_a_batch_changes_nothing(has_elmo):
    network = make_network(has_elmo=has_elmo).eval()
    batch = make_batch(PASSAGES, QUESTIONS, spans=SPANS, has_layers=has_elmo)
    together = network.predict(batch)
    losses = []
    for row in range(3):
        part = slice(row, row + 1)
        single = make_batch(PASSAGES[part], QUESTIONS[part], spans=SPANS[part], has_layers=has_elmo)
        (found,) = network.predict(single)
        assert (found.start, found.end) == (together[row].start, together[row].end)
        assert found.log_probability == pytest.approx(together[row].log_probability, abs=1e-5)
        losses.append(network.loss(single))
    assert_close(network.loss(batch), torch.stack(losses).mean())


def test_log_probabilities_are_of_the_passages_tokens_alone():
    start_logs, last_logs = make_network()(make_batch(PASSAGES, QUESTIONS))
    for logs in (start_logs, last_logs):
        assert_close(logs.exp().sum(dim=1), torch.ones(3))
        assert torch.isinf(logs[0, 1:]).all()


def test_predictions_do_not_use_gold_labels():
    network = make_network().eval()
    assert network.predict(make_batch(PASSAGES, QUESTIONS)) == network.predict(
        make_batch(PASSAGES, QUESTIONS, spans=SPANS)
    )
    with pytest.raises(ValueError, match="prepared without gold spans"):
        network.loss(make_batch(PASSAGES, QUESTIONS))


def test_answers_are_no_longer_than_asked_for():
    for seed in range(5):
        found = make_network(seed=seed, max_answer_tokens=2).predict(
            make_batch(PASSAGES, QUESTIONS)
        )
        assert all(1 <= span.end - span.start <= 2 for span in found)


def test_every_weight_has_a_gradient_the_mixes_below_and_above_too():
    network = make_network(dropout=0.0)
    with torch.no_grad():  # away from the beginning, where states and gradients are small
        for weights in network.parameters():
            weights.mul_(2)
    network.loss(make_batch(PASSAGES, QUESTIONS, spans=SPANS)).backward()
    for name, weights in network.named_parameters():
        assert weights.grad is not None, name
        assert weights.grad.abs().max() > 1e-5, name
    names = dict(network.named_parameters())
    assert {"tokens.elmo_below.mix.weights", "tokens.elmo_above.mix.weights"} <= set(names)


def test_dropout_follows_the_seed_and_rests_in_prediction():
    network = make_network(dropout=0.5)
    batch = make_batch(PASSAGES, QUESTIONS, spans=SPANS)
    losses = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        losses.append(network.loss(batch).item())
    assert losses[0] == losses[1] != losses[2]
    network.eval()
    assert network.loss(batch).item() == network.loss(batch).item()


def make_puzzles(generator):
    """Ask one passage for each of its keys: the answer follows its key, up to a mark."""
    keys, values, mark = WORDS[:6], WORDS[6:12], WORDS[12]
    passage, spans = [], {}
    for key in generator.sample(keys, 4):
        answer = [generator.choice(values) for _ in range(generator.randint(1, 3))]
        spans[key] = (len(passage) + 1, len(passage) + 1 + len(answer))
        passage += [key, *answer, mark]
    return [(passage, [WORDS[13], key, WORDS[14]], [span]) for key, span in spans.items()]


@pytest.mark.slow
def test_answers_that_depend_on_the_question_are_learned():
    generator = random.Random(0)
    puzzles = [puzzle for _ in range(13) for puzzle in make_puzzles(generator)]
    network = make_network(has_elmo=False, hidden_dim=16, dropout=0.0)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    batches = [
        make_batch(*zip(*part, strict=True), has_layers=False)
        for part in (puzzles[::2], puzzles[1::2])
    ]
    for _ in range(40):
        for batch in batches:
            optimizer.zero_grad()
            network.loss(batch).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
            optimizer.step()
    passages, questions, spans = zip(*puzzles, strict=True)
    found = network.eval().predict(make_batch(passages, questions, has_layers=False))
    num_right = sum(
        (answer.start, answer.end) == span for answer, (span,) in zip(found, spans, strict=True)
    )
    assert num_right >= len(puzzles) - 1
