"""The rest state: an initial LSTM state for sentences without previous context.

A biLM trained with carried state hardly ever starts from zeros in training. The mean of its states
at sentence ends is closer to what it has seen; but the mean over different texts may be typical of
none of them, so the best scale between zeros and the mean is chosen by measurement.

Shapes: L LSTM layers, D one direction, C cells.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from elmore.config import StatePolicy
from elmore.errors import DataError
from elmore.lm.perplexity import LossTotals
from elmore.model.bilm import BiLM
from elmore.model.state import BiLMState, repeat_state
from elmore.read.documents import DocumentReader, take_documents, zero_state
from elmore.text.batches import Document, Speller

# Measures the loss on a text, given a state policy and an initial state.
MeasureFrom = Callable[[StatePolicy, BiLMState], LossTotals]

# Scales between zeros and the mean. They include 0, so a rest state never does harm on the text it
# was chosen on.
STRENGTHS = (1.0, 0.75, 0.5, 0.25, 0.0)


@dataclass(frozen=True, kw_only=True)
class StartReport:
    """The loss on a text, by the state that sentences start from."""

    zeros: LossTotals  # every sentence from zeros
    rest: LossTotals  # every sentence from the rest state
    carried: LossTotals  # sentences from the one before, documents from the rest state
    strength: float = 1.0  # the rest state is the mean state times this


def compute_rest_state(
    bilm: BiLM,
    speller: Speller,
    documents: Iterable[Document],
    *,
    max_tokens: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the mean state at the ends of sentences, (2, L, D) and (2, L, C).

    There the forward LM has just read `</S>`, and the backward LM `<S>`. Documents start from
    zeros, so that the result does not depend on a rest state stored earlier.
    """
    reader = DocumentReader(
        bilm, speller, policy=StatePolicy.DOCUMENT, initial_state=zero_state(bilm)
    )
    hidden = torch.zeros(bilm.initial_hidden.shape, dtype=torch.float64)
    cell = torch.zeros(bilm.initial_cell.shape, dtype=torch.float64)
    num_sentences = 0
    for batch in reader.read(take_documents(documents, max_tokens=max_tokens)):
        hidden += batch.state.hidden.cpu().double().sum(dim=2)
        cell += batch.state.cell.cpu().double().sum(dim=2)
        num_sentences += len(batch.sentences)
    if not num_sentences:
        raise DataError("there is no sentence to compute a rest state from; give some text")
    return (
        (hidden / num_sentences).to(bilm.initial_hidden),
        (cell / num_sentences).to(bilm.initial_cell),
    )


@torch.no_grad()
def store_rest_state(bilm: BiLM, hidden: Tensor, cell: Tensor) -> None:
    """Make this the initial state of every sentence; it is saved with the weights."""
    for buffer, state in ((bilm.initial_hidden, hidden), (bilm.initial_cell, cell)):
        if buffer.shape != state.shape:
            raise ValueError(
                f"expected a state of shape {tuple(buffer.shape)}, got {tuple(state.shape)}"
            )
        buffer.copy_(state)


def choose_strength(measure: MeasureFrom, mean: tuple[Tensor, Tensor]) -> float:
    """Return the scale of a mean state that predicts sentences without context best."""

    def predict_from(strength: float) -> float:
        start = repeat_state(mean[0] * strength, mean[1] * strength, 1)
        perplexity = measure(StatePolicy.RESET, start).perplexity
        return math.inf if math.isnan(perplexity) else perplexity

    return min(STRENGTHS, key=predict_from)


def compare_starts(
    measure: MeasureFrom,
    *,
    bilm: BiLM,
    rest: tuple[Tensor, Tensor],
) -> StartReport:
    """Measure the loss on a text from zeros, from a rest state, and with carried state."""
    resting = repeat_state(*rest, 1)
    return StartReport(
        zeros=measure(StatePolicy.RESET, zero_state(bilm)),
        rest=measure(StatePolicy.RESET, resting),
        carried=measure(StatePolicy.DOCUMENT, resting),
    )
