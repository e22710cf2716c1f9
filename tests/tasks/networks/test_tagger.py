import math
from itertools import product

import pytest
import torch

from elmore.tasks.metrics.tag_schemes import TagScheme, read_spans, write_tags
from elmore.tasks.networks.tag_numbers import number_tags
from elmore.tasks.networks.tag_rules import find_transitions
from elmore.tasks.networks.tagger import Tagger
from tests.tasks.networks.tagging import fit, make_batch, make_tokens

LABELS = ["O", "B-A", "I-A"]
SENTENCES = [["mr", "Ray", "in", "Rome"], ["Rome"], ["the", "Unknown", "said"]]
TAGS = [["O", "B-A", "I-A", "O"], ["B-A"], ["O", "O", "B-A"]]


def make_tagger(*, uses_crf=True, rules=None, dropout=0.0, labels=LABELS, **options):
    torch.manual_seed(0)
    network = Tagger(
        tokens=make_tokens(dropout=dropout),
        num_labels=len(labels),
        write=lambda numbers: [labels[number] for number in numbers],
        **{"hidden_dim": 5, "num_layers": 2, **options},
        dropout=dropout,
        uses_crf=uses_crf,
        rules=rules,
    )
    if uses_crf:
        for weights in network.crf.parameters():
            torch.nn.init.normal_(weights)
    return network.eval()


def make_case(rows=(0, 1, 2), tags=TAGS):
    gold = number_tags([tags[row] for row in rows], labels=LABELS)
    return make_batch([SENTENCES[row] for row in rows], gold)


@pytest.mark.parametrize("uses_crf", [True, False])
def test_alone_and_in_a_batch_are_alike(uses_crf):
    network = make_tagger(uses_crf=uses_crf)
    losses, predictions = [], []
    for row in range(3):
        losses.append(network.loss(make_case([row])).item())
        predictions += network.predict(make_case([row]))
    assert network.predict(make_case()) == predictions
    assert [len(tags) for tags in predictions] == [4, 1, 3]
    assert network.loss(make_case()).item() == pytest.approx(sum(losses) / 3, rel=1e-5)
    assert len(set(losses)) == 3


@pytest.mark.parametrize("uses_crf", [True, False])
def test_e_to_minus_the_losses_of_all_taggings_is_1(uses_crf):
    """So the loss is -log of a probability, whatever the network's numbers."""
    network = make_tagger(uses_crf=uses_crf)
    total = 0.0
    for tags in product(LABELS, repeat=3):
        total += math.exp(-network.loss(make_case([2], [[], [], list(tags)])).item())
    assert total == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("uses_crf", [True, False])
def test_the_prediction_is_the_tagging_of_least_loss(uses_crf):
    rules = find_transitions(LABELS, scheme=TagScheme.IOB2)
    network = make_tagger(uses_crf=uses_crf, rules=rules)
    losses = {
        tags: network.loss(make_case([2], [[], [], list(tags)])).item()
        for tags in product(LABELS, repeat=3)
    }
    allowed = [
        tags
        for tags in losses
        if write_tags(read_spans(tags), num_tokens=3, scheme=TagScheme.IOB2) == list(tags)
    ]
    assert network.predict(make_case([2])) == [list(min(allowed, key=losses.__getitem__))]


@pytest.mark.parametrize("uses_crf", [True, False])
def test_no_half_a_span_is_predicted(uses_crf):
    labels = ["E-A", "O", "B-A", "I-A", "S-A", "B-B", "E-B"]
    rules = find_transitions(labels, scheme=TagScheme.BIOES)
    network = make_tagger(uses_crf=uses_crf, labels=labels, rules=rules)
    sentences = [[f"{word}{number}" for word in "abcdefg"] for number in range(40)]
    with torch.no_grad():
        network.scorer.weight.mul_(20)
        predictions = network.predict(make_batch(sentences, None))
    assert len({tag for tags in predictions for tag in tags}) > 4
    for tags in predictions:
        assert write_tags(read_spans(tags), num_tokens=7, scheme=TagScheme.BIOES) == tags


def test_gold_is_not_looked_at_when_predicting():
    network = make_tagger()
    unlabeled = make_batch(SENTENCES, None)
    other = make_case(tags=[["O"] * 4, ["O"], ["O"] * 3])
    assert network.predict(unlabeled) == network.predict(make_case()) == network.predict(other)
    with pytest.raises(ValueError, match="without gold tags"):
        network.loss(unlabeled)


@pytest.mark.parametrize("uses_crf", [True, False])
def test_gradients_reach_everything_that_is_learned(uses_crf):
    network = make_tagger(uses_crf=uses_crf)
    network.loss(make_case()).backward()
    learned = dict(network.named_parameters())
    assert {"tokens.elmo_below.mix.weights", "tokens.elmo_above.mix.weights"} <= learned.keys()
    for name, weights in learned.items():
        if name.startswith("crf") and not uses_crf:
            assert not weights.requires_grad
            assert (weights == 0).all()
        else:
            assert weights.grad.isfinite().all(), name
            assert (weights.grad != 0).any(), name


@pytest.mark.parametrize("uses_crf", [True, False])
def test_tags_that_training_does_not_have_give_no_loss(uses_crf):
    network = make_tagger(uses_crf=uses_crf)
    strange = [TAGS[0], TAGS[1], ["O", "B-NEW", "B-A"]]
    loss, known = (network.loss(make_case(tags=tags)).item() for tags in (strange, TAGS))
    others = network.loss(make_case([0, 1])).item()
    if uses_crf:  # none of the whole sentence
        assert 3 * loss == pytest.approx(2 * others, rel=1e-5)
    else:  # none of the token
        assert 2 * others < 3 * loss < 3 * known


def test_dropout_follows_torchs_generator_and_ends_with_training():
    network = make_tagger(dropout=0.5)
    still = [network.loss(make_case()).item() for _ in range(2)]
    network.train()
    losses = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        losses.append(network.loss(make_case()).item())
    assert network.encoder.dropout.rate == network.dropout.p == 0.5
    assert still[0] == still[1]
    assert losses[0] == losses[1] != losses[2]
    assert losses[0] != still[0]


def test_dropout_thins_the_states_below_the_scores():
    """With one layer and inputs that keep everything, only the top is left to drop."""
    network = make_tagger(num_layers=1)
    network.dropout.p = 0.5
    network.train()
    losses = {network.loss(make_case()).item() for _ in range(3)}
    assert len(losses) == 3


def test_dropout_leaves_the_elmo_vectors_above_to_their_own():
    network = make_tagger()
    seen = []
    network.scorer.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    network.loss(make_case())
    network.dropout.p = 1.0
    network.train().loss(make_case())
    whole, dropped = seen
    num_states = network.encoder.output_dim
    assert not dropped[..., :num_states].any()
    assert torch.equal(dropped[..., num_states:], whole[..., num_states:])
    assert whole[..., num_states:].any()


def make_agreement(*, is_both):
    """Return 50 sentences; whether their ends agree, or else the last token, tags what is between.

    One layer gives what is left and what is right side by side, and no linear scores tell whether
    they agree; a second layer can.
    """
    sentences, tags = [], []
    for number in range(50):
        first, last = "mr" if number % 2 else "the", "said" if number % 3 else "and"
        is_name = (first == "mr") == (last == "said") if is_both else last == "said"
        between = [f"w{number % 7}"] * (1 + number % 4)
        sentences.append([first, *between, last])
        tags.append(["O", *["B-A" if is_name else "O"] * len(between), "O"])
    return sentences, tags


@pytest.mark.slow
@pytest.mark.parametrize(("uses_crf", "num_layers"), [(True, 2), (False, 1)])
def test_what_far_neighbors_decide_is_memorized(uses_crf, num_layers):
    sentences, tags = make_agreement(is_both=num_layers == 2)
    network = make_tagger(uses_crf=uses_crf, num_layers=num_layers, hidden_dim=8)
    batch = make_batch(sentences, number_tags(tags, labels=LABELS))
    predictions = fit(network, batch, num_steps=80, learning_rate=0.04)
    assert sum(found == right for found, right in zip(predictions, tags, strict=True)) >= 49
