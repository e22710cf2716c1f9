"""Losses are those of the formulas, every token counts once, and nothing depends on the batches."""

import math
from dataclasses import replace

import pytest
import torch

from elmore.config import StatePolicy
from elmore.errors import ConfigError, DataError
from elmore.lm import perplexity
from elmore.lm.perplexity import LossTotals, measure_losses
from elmore.read import documents as reader
from elmore.read.documents import DocumentReader, zero_state
from tests.lm.slow_language_model import (
    DOCUMENTS,
    SENTENCES,
    SlowLanguageModel,
    double,
    make_language_model,
)

POLICIES = list(StatePolicy)
NUM_PREDICTIONS = sum(len(sentence) + 1 for sentence in SENTENCES)


def measure(model, **options):
    return measure_losses(
        model.elmo, model.softmax, model.words, **{"documents": DOCUMENTS, **options}
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_losses_are_those_of_the_formulas(policy):
    model = make_language_model()
    wanted = SlowLanguageModel(model).sums(DOCUMENTS, policy)
    found = measure(model, state=policy)
    assert (found.forward_lm, found.backward_lm) == pytest.approx(wanted, rel=1e-5)
    found = measure(double(model), state=policy)
    assert (found.forward_lm, found.backward_lm) == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_sentence_is_read_once_whatever_the_batches(policy, monkeypatch):
    monkeypatch.setattr(reader, "WAITING_TOKENS", 12)
    model = make_language_model()
    for num_lanes, tokens_per_batch in ((1, 1), (2, 12), (3, 8), (64, 4096)):
        reading = DocumentReader(
            model.elmo.bilm,
            model.elmo.speller,
            policy=policy,
            num_lanes=num_lanes,
            tokens_per_batch=tokens_per_batch,
        )
        batches = list(reading.read(iter(DOCUMENTS)))
        read = sorted(
            (number, sentence)
            for batch in batches
            for number, sentence in zip(batch.numbers, batch.sentences, strict=True)
        )
        assert read == list(enumerate(SENTENCES))
        if policy is StatePolicy.STREAM:
            assert [batch.numbers for batch in batches] == [[n] for n in range(len(SENTENCES))]


@pytest.mark.parametrize("policy", POLICIES)
def test_lanes_batches_and_windows_change_nothing(policy, monkeypatch):
    model = make_language_model()
    whole = measure(model, state=policy)
    assert whole.num_predictions == NUM_PREDICTIONS
    monkeypatch.setattr(perplexity, "ROWS_PER_CALL", 7)
    monkeypatch.setattr(reader, "WAITING_TOKENS", 5)
    monkeypatch.setattr(reader, "MAX_KEPT_TOKENS", 3)
    for num_lanes, tokens_per_batch in ((1, 4096), (2, 9), (3, 1)):
        parts = measure(model, state=policy, num_lanes=num_lanes, tokens_per_batch=tokens_per_batch)
        assert parts.forward_lm == pytest.approx(whole.forward_lm, rel=1e-6)
        assert parts.backward_lm == pytest.approx(whole.backward_lm, rel=1e-6)
        assert replace(parts, forward_lm=0, backward_lm=0) == replace(
            whole, forward_lm=0, backward_lm=0
        )


def test_policies_differ_where_there_is_a_past():
    model = make_language_model()
    losses = {policy: measure(model, state=policy).forward_lm for policy in POLICIES}
    assert len({round(loss, 4) for loss in losses.values()}) == 3
    alone = [[DOCUMENTS[0][0]]]
    assert len({measure(model, state=policy, documents=alone) for policy in POLICIES}) == 1


def test_the_initial_state_can_be_replaced():
    model = make_language_model()
    slow = SlowLanguageModel(model)
    slow.initial = slow.zeros
    found = measure(model, state=StatePolicy.RESET, initial_state=zero_state(model.elmo.bilm))
    wanted = slow.sums(DOCUMENTS, "reset")
    assert (found.forward_lm, found.backward_lm) == pytest.approx(wanted, rel=1e-5)


def test_totals_of_parts_add_up_and_text_is_counted():
    model = make_language_model()
    whole = measure(model)
    parts = measure(model, documents=DOCUMENTS[:1]) + measure(model, documents=DOCUMENTS[1:])
    assert parts.forward_lm == pytest.approx(whole.forward_lm, rel=1e-6)
    assert replace(parts, forward_lm=0, backward_lm=0) == replace(
        whole, forward_lm=0, backward_lm=0
    )
    one = measure(model, documents=[[["Zürich", "ran"], []]])
    assert (one.num_predictions, one.num_tokens, one.num_unknown) == (3, 2, 1)
    assert one.num_characters == len("Zürich ran ")
    assert one.unknown_share == 0.5


def test_perplexities_come_from_mean_losses():
    totals = LossTotals(
        forward_lm=2 * math.log(8), backward_lm=2 * math.log(2), num_predictions=2, num_characters=4
    )
    assert totals.forward_perplexity == pytest.approx(8)
    assert totals.backward_perplexity == pytest.approx(2)
    assert totals.perplexity == pytest.approx(4)
    assert totals.bits_per_character == pytest.approx(1)
    assert replace(totals, forward_lm=1e9).perplexity == math.inf
    with pytest.raises(DataError, match="no token"):
        _ = LossTotals().perplexity


def test_no_more_documents_are_asked_for_than_reach_the_limit():
    model = make_language_model()

    def documents():
        yield from DOCUMENTS[:2]
        raise AssertionError("one too many")

    first = sum(len(sentence) + 1 for sentence in DOCUMENTS[0])
    found = measure(model, documents=documents(), max_tokens=first + 1)
    assert found == measure(model, documents=DOCUMENTS[:2])
    assert measure(model, max_tokens=first).num_predictions == first


def test_memory_is_bounded_by_a_window_of_documents(monkeypatch):
    monkeypatch.setattr(reader, "WAITING_TOKENS", 20)
    model = make_language_model()
    num_taken, num_seen = 0, 0

    def documents():
        nonlocal num_taken
        for _ in range(30):
            num_taken += 1
            yield DOCUMENTS[0]

    def on_progress(num_predictions):
        nonlocal num_seen
        num_seen = num_predictions
        # Two lanes hold a document each, and 20 tokens are three documents more.
        assert num_taken * 11 <= num_predictions + 5 * 11

    measure(model, documents=documents(), num_lanes=2, on_progress=on_progress)
    assert num_seen == 30 * 11


def token_losses(model, sentence):
    """-log p of w1 .. wn </S> forward and of <S> w1 .. wn backward."""
    (batch,) = DocumentReader(model.elmo.bilm, model.elmo.speller, policy=StatePolicy.RESET).read(
        [[sentence]]
    )
    found = perplexity.pair_with_targets(batch, perplexity.WordIds(model.words))
    return (
        model.softmax.losses(found.forward_lm, found.forward_targets).tolist(),
        model.softmax.losses(found.backward_lm, found.backward_targets).tolist(),
    )


# What is predicted has not been read.


def find_influence(model):
    """Return each (direction, token changed, place of a prediction) where the loss changed too.

    Tokens outside the vocabulary are all predicted as one word, and each read as it is spelled. So
    a token can be changed without changing the word that is to be predicted in its place.
    """
    found = set()
    for token in range(6):
        sentence = ["the", "cat", "sat", "on", "a", "mat"]
        sentence[token] = "unheard-of"
        before = token_losses(model, sentence)
        sentence[token] = "Zürich"
        after = token_losses(model, sentence)
        for direction, old, new in zip(("forward", "backward"), before, after, strict=True):
            found |= {(direction, token, place) for place in range(7) if old[place] != new[place]}
    return found


def test_every_prediction_follows_what_was_read_before_it_and_nothing_else():
    # Place p of the forward LM is that of token p, of the backward LM that of token p - 1.
    ahead = {("forward", token, place) for token in range(6) for place in range(token + 1, 7)}
    back = {("backward", token, place) for token in range(6) for place in range(token + 1)}
    assert find_influence(make_language_model()) == ahead | back


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_a_planted_leak_is_found(direction, monkeypatch):
    """The same test with outputs shifted by one, so that a direction predicts what it has read."""
    pair = perplexity.pair_with_targets
    shift = {"forward": -1, "backward": 1}[direction]

    def pair_shifted(batch, words):
        found = pair(batch, words)
        outputs = getattr(found, f"{direction}_lm").roll(shift, dims=0)
        return replace(found, **{f"{direction}_lm": outputs})

    monkeypatch.setattr(perplexity, "pair_with_targets", pair_shifted)
    offset = {"forward": 0, "backward": 1}[direction]
    influence = find_influence(make_language_model())
    assert all((direction, token, token + offset) in influence for token in range(6))


def test_an_adaptive_softmax_is_measured_too():
    model = make_language_model(is_adaptive=True)
    found = measure(model, state=StatePolicy.RESET)
    slow = 0.0
    for sentence in SENTENCES:
        slow += sum(token_losses(model, sentence)[0])
    assert found.forward_lm == pytest.approx(slow, rel=1e-6)
    with pytest.raises(ConfigError, match="adaptive"):
        measure(model, num_shared=5, unknown_id=2)


def test_words_beyond_the_shared_ones_count_as_unknown():
    model = make_language_model()
    found = measure(model, num_shared=6, unknown_id=2, state=StatePolicy.RESET)
    assert found.forward_lm < measure(model, state=StatePolicy.RESET).forward_lm
    (batch,) = DocumentReader(model.elmo.bilm, model.elmo.speller, policy=StatePolicy.RESET).read(
        [[["mat"]]]
    )
    with torch.no_grad():
        log_probs = model.softmax.log_probs(batch.layers[-1, :, :5])
    one = measure(model, num_shared=6, unknown_id=2, state=StatePolicy.RESET, documents=[[["mat"]]])
    unknown = torch.cat([log_probs[0, 2:3], log_probs[0, 6:]]).logsumexp(dim=0)
    assert one.forward_lm == pytest.approx(-float(unknown + log_probs[1, 1]), rel=1e-5)
