"""The state that LSTMs have between sentences, from which a text without a past is read best.

A biLM trained with its state carried on has never seen zeros in the middle of its training. The
mean of its states at sentence ends is a start it knows better; but the mean of unlike texts is the
state of none of them, so how far to go from zeros towards it is measured.

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

# How a text is predicted, by policy and initial state.
MeasureFrom = Callable[[StatePolicy, BiLMState], LossTotals]

# How far from zeros to the mean. Zeros are among them: on the text by which it is chosen, a rest
# state does no harm.
STRENGTHS = (1.0, 0.75, 0.5, 0.25, 0.0)


@dataclass(frozen=True, kw_only=True)
class StartReport:
    """What predicting a text costs by what a sentence starts from."""

    zeros: LossTotals  # every sentence from zeros
    rest: LossTotals  # every sentence from the rest state
    carried: LossTotals  # every sentence from the one before it, a document from the rest state
    strength: float = 1.0  # how much of the mean state the rest state is


def compute_rest_state(
    bilm: BiLM,
    speller: Speller,
    documents: Iterable[Document],
    *,
    max_tokens: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the mean state at the ends of sentences, (2, L, D) and (2, L, C).

    The forward LM has then read `</S>`, the backward LM `<S>`. Documents start from zeros, so that
    the result does not depend on a state stored before.
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
    """Let every sentence begin from this state; it is saved with the weights."""
    for buffer, state in ((bilm.initial_hidden, hidden), (bilm.initial_cell, cell)):
        if buffer.shape != state.shape:
            raise ValueError(
                f"expected a state of shape {tuple(buffer.shape)}, got {tuple(state.shape)}"
            )
        buffer.copy_(state)


def choose_strength(measure: MeasureFrom, mean: tuple[Tensor, Tensor]) -> float:
    """Return how much of a mean state predicts sentences without a past best."""

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
    """Measure a text from cold starts, with zeros and with a rest state, and with state carried."""
    resting = repeat_state(*rest, 1)
    return StartReport(
        zeros=measure(StatePolicy.RESET, zero_state(bilm)),
        rest=measure(StatePolicy.RESET, resting),
        carried=measure(StatePolicy.DOCUMENT, resting),
    )
