"""The rest state is a part of the mean state at sentence ends; once stored, models begin there."""

import numpy as np
import pytest
import torch

from elmore.config import StatePolicy
from elmore.errors import DataError, ModelError
from elmore.lm.perplexity import LossTotals, measure_losses
from elmore.lm.rest_state import (
    choose_strength,
    compare_starts,
    compute_rest_state,
    store_rest_state,
)
from elmore.weights.bilm_tf import write_bilm_tf
from elmore.weights.elmo_model import ElmoModel
from tests.lm.slow_language_model import (
    DOCUMENTS,
    SlowLanguageModel,
    double,
    make_language_model,
)


def test_the_rest_state_is_the_mean_of_states_at_sentence_ends():
    model = double(make_language_model())
    slow = SlowLanguageModel(model)
    hidden, cell = [], []
    for document in DOCUMENTS:
        state = slow.zeros
        for sentence in document:
            state = slow.score(sentence, state)[2]
            hidden.append([[layer[0] for layer in direction] for direction in state])
            cell.append([[layer[1] for layer in direction] for direction in state])
    found = compute_rest_state(model.elmo.bilm, model.elmo.speller, DOCUMENTS)
    np.testing.assert_allclose(found[0], np.mean(hidden, axis=0), atol=1e-10)
    np.testing.assert_allclose(found[1], np.mean(cell, axis=0), atol=1e-10)


def test_a_state_stored_before_does_not_matter_and_text_is_limited():
    model = make_language_model()
    bilm, speller = model.elmo.bilm, model.elmo.speller
    first = compute_rest_state(bilm, speller, DOCUMENTS, max_tokens=1)
    store_rest_state(bilm, *first)
    again = compute_rest_state(bilm, speller, DOCUMENTS[:1])
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    with pytest.raises(DataError, match="no sentence"):
        compute_rest_state(bilm, speller, [])


def test_a_stored_state_is_where_sentences_start_and_is_saved_with_the_weights(tmp_path):
    model = make_language_model()
    bilm = model.elmo.bilm
    buffer = bilm.initial_hidden
    rest = compute_rest_state(bilm, model.elmo.speller, DOCUMENTS)

    def measure(state, initial):
        return measure_losses(
            model.elmo,
            model.softmax,
            model.words,
            documents=DOCUMENTS,
            state=state,
            initial_state=initial,
            num_lanes=2,
        )

    report = compare_starts(measure, bilm=bilm, rest=rest)
    store_rest_state(bilm, *rest)
    assert bilm.initial_hidden is buffer
    for state, wanted in ((StatePolicy.RESET, report.rest), (StatePolicy.DOCUMENT, report.carried)):
        found = measure_losses(
            model.elmo, model.softmax, model.words, documents=DOCUMENTS, state=state
        )
        assert found.perplexity == pytest.approx(wanted.perplexity, rel=1e-6)
    assert len({round(x.perplexity, 4) for x in (report.zeros, report.rest, report.carried)}) == 3
    model.elmo.save_pretrained(tmp_path)
    loaded = ElmoModel.from_pretrained(tmp_path).bilm
    assert torch.equal(loaded.initial_hidden, rest[0])
    assert torch.equal(loaded.initial_cell, rest[1])


def test_a_state_of_another_shape_is_refused():
    model = make_language_model()
    bilm = model.elmo.bilm
    with pytest.raises(ValueError, match=r"\(2, 2, 5\)"):
        store_rest_state(bilm, bilm.initial_cell, bilm.initial_cell)


def test_a_format_without_a_place_for_it_refuses_the_model(tmp_path):
    with pytest.raises(ModelError, match="start from zeros"):
        write_bilm_tf(make_language_model().elmo, tmp_path / "weights.hdf5")


@pytest.mark.parametrize("wanted", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_as_much_of_the_mean_is_kept_as_predicts_single_sentences_best(wanted):
    mean = torch.full((2, 1, 3), 4.0), torch.full((2, 1, 5), 8.0)
    policies = set()

    def measure(policy, initial):
        policies.add(policy)
        distance = (initial.hidden - 4 * wanted).abs().sum() + (
            initial.cell - 8 * wanted
        ).abs().sum()
        loss = float(distance) + 1
        return LossTotals(forward_lm=loss, backward_lm=loss, num_predictions=1)

    assert choose_strength(measure, mean) == wanted
    assert policies == {StatePolicy.RESET}


def test_where_nothing_helps_the_mean_is_kept_and_what_is_not_a_number_is_not():
    mean = torch.ones(2, 1, 3), torch.ones(2, 1, 5)
    same = LossTotals(forward_lm=1.0, backward_lm=1.0, num_predictions=1)
    broken = LossTotals(forward_lm=float("nan"), backward_lm=1.0, num_predictions=1)
    assert choose_strength(lambda _policy, _initial: same, mean) == 1.0
    assert (
        choose_strength(lambda _, initial: broken if initial.hidden.sum() > 5 else same, mean)
        == 0.75
    )
