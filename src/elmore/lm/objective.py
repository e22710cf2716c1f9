"""The training loss: how well each direction predicts its next words in a window.

Shapes: T steps, B rows, N predictions of one direction, D one direction.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from elmore.config import Precision
from elmore.lm.settings import SoftmaxKind, SoftmaxSettings
from elmore.lm.streams import TrainingWindow
from elmore.model.adaptive_softmax import AdaptiveSoftmax
from elmore.model.random_numbers import draw_keep_mask, make_generator
from elmore.model.sampling import LogUniformSampler, Negatives
from elmore.model.state import BiLMState
from elmore.model.word_softmax import WordSoftmax
from elmore.text.batches import Speller

# Part of the random key, so that negatives and dropout never share random numbers.
NEGATIVES_KEY, DROPOUT_KEY = 1, 2


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowLoss:
    """The loss of one window, and the state after it."""

    total: Tensor  # the sum of both directions' losses
    num_predictions: int  # of one direction
    state: BiLMState


class Objective:
    """The loss of both directions, which share a softmax; all randomness follows seed and step."""

    def __init__(
        self,
        reader: nn.Module,
        softmax: WordSoftmax | AdaptiveSoftmax,
        speller: Speller,
        *,
        sampler: LogUniformSampler | None,
        dropout: float,
        seed: int,
        device: torch.device,
        precision: Precision = Precision.F32,
    ) -> None:
        self.reader = reader
        self.softmax = softmax
        self.speller = speller
        self.sampler = sampler
        self.dropout = dropout
        self.seed = seed
        self.device = device
        self.precision = precision

    def draw_negatives(self, step: int) -> Negatives | None:
        """Return the negative samples of a step; None means the full softmax."""
        if self.sampler is None:
            return None
        negatives = self.sampler.draw(make_generator(self.seed, NEGATIVES_KEY, step))
        return Negatives(
            words=negatives.words.to(self.device),
            log_expected=negatives.log_expected.to(self.device),
        )

    def compute(
        self,
        window: TrainingWindow,
        state: BiLMState,
        negatives: Negatives | None,
        *,
        step: int,
        first_row: int,
    ) -> WindowLoss:
        """Read a window, starting from `state`; its first row is `first_row` of the step."""
        tokens = self.speller.spell(window.tokens, with_markers=True).to(self.device)
        positions = torch.from_numpy(window.positions).to(self.device)
        is_predicted = torch.from_numpy(window.is_predicted.flatten()).to(self.device)
        targets = torch.from_numpy(window.targets).to(self.device).flatten(1)[:, is_predicted]
        draw_mask = self._mask_drawer(step, first_row, window.positions.shape[1:], state)
        outputs, final = self.reader(tokens, positions, state, draw_mask)
        outputs = outputs[:, is_predicted].flatten(0, 1)  # (2N, D)
        return WindowLoss(
            total=self._loss(outputs, targets.flatten(), negatives),
            num_predictions=targets.shape[1],
            state=final.like(state),
        )

    def _loss(self, outputs: Tensor, targets: Tensor, negatives: Negatives | None) -> Tensor:
        if isinstance(self.softmax, AdaptiveSoftmax):
            return self.softmax.total_loss(outputs, targets)
        if negatives is None:
            return self.softmax.total_loss(outputs, targets, precision=self.precision)
        return self.softmax.sampled_loss(outputs, targets, negatives, precision=self.precision)

    def _mask_drawer(
        self, step: int, first_row: int, shape: tuple[int, ...], state: BiLMState
    ) -> Callable[[int, int], Tensor] | None:
        if not self.dropout:
            return None
        (num_steps, num_rows), dim = shape, state.hidden.shape[3]

        def draw(direction: int, depth: int) -> Tensor:
            mask = draw_keep_mask(
                self.seed,
                DROPOUT_KEY,
                step,
                direction,
                depth,
                shape=(num_rows, num_steps * dim),
                first_row=first_row,
                dropout=self.dropout,
            )
            by_step = mask.view(num_rows, num_steps, dim).transpose(0, 1)
            return by_step.reshape(num_steps * num_rows, dim).to(self.device)

        return draw


def choose_sampler(settings: SoftmaxSettings, *, num_words: int) -> LogUniformSampler | None:
    """Return the sampler of negatives, or None for a full or adaptive softmax."""
    kind = settings.kind
    if kind is SoftmaxKind.AUTO and num_words > settings.num_negatives:
        kind = SoftmaxKind.SAMPLED
    if kind is not SoftmaxKind.SAMPLED:
        return None
    return LogUniformSampler(num_words=num_words, num_negatives=settings.num_negatives)
