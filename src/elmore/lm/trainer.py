"""Run training steps, and save and restore everything they depend on.

Shapes: R rows of all processes, L layers, D one direction, C cells.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from elmore.config import Precision
from elmore.corpus.corpus import Corpus
from elmore.jobs.checkpoint import load_into, prefixed, without_prefix
from elmore.kernels.products import find_product_kernel
from elmore.kernels.threads import for_native_calls
from elmore.lm.distributed import Group
from elmore.lm.gradient_sum import GradientSum
from elmore.lm.network import Softmax
from elmore.lm.objective import Objective, choose_sampler
from elmore.lm.optimizers import Optimizer
from elmore.lm.settings import PretrainSettings
from elmore.lm.streams import Streams
from elmore.model.adaptive_softmax import AdaptiveSoftmax
from elmore.model.state import BiLMState, join
from elmore.model.summed_loss import MAX_PACKED
from elmore.model.windows import WindowReader
from elmore.model.word_softmax import WordSoftmax
from elmore.weights.elmo_model import ElmoModel


@dataclass(frozen=True, kw_only=True, slots=True)
class StepResult:
    """The result of a step, over all processes."""

    total_loss: float  # of both directions
    num_predictions: int  # of one direction
    gradient_norm: float
    learning_rate: float
    votes: list[float]  # the votes of the processes, summed


class Trainer:
    """A model in training: its weights, its optimizer and the LSTM states of its rows."""

    def __init__(
        self,
        settings: PretrainSettings,
        corpus: Corpus,
        elmo: ElmoModel,
        softmax: Softmax,
        *,
        group: Group,
    ) -> None:
        training = settings.training
        self.settings = settings
        self.group = group
        self._num_own_rows = group.share_rows(training.rows, accumulation=training.accumulation)
        self.elmo = elmo.to(group.device).train()
        self.softmax = softmax.to(group.device).train()
        self.streams = Streams(corpus.train, num_rows=training.rows, window=training.window)
        self.num_steps = count_steps(settings, self.streams)
        self.num_done = 0
        self.is_consistent = True  # weights, optimizer and LSTM states belong to the same step
        self.state = detach_rows(elmo.bilm.initial_state(training.rows))
        sampler = (
            None
            if isinstance(softmax, AdaptiveSoftmax)
            else choose_sampler(settings.softmax, num_words=len(corpus.vocabulary))
        )
        # The kernels multiply the large matrices, so torch's threads would only be in the way.
        is_native = (
            isinstance(softmax, WordSoftmax)
            and (sampler is not None or softmax.weight.numel() <= MAX_PACKED)
            and find_product_kernel(elmo.bilm.parameters()) is not None
        )
        self._threads: Callable[[], AbstractContextManager[None]] = (
            for_native_calls if is_native else nullcontext
        )
        self._objective = Objective(
            WindowReader(elmo.bilm, precision=training.precision),
            softmax,
            elmo.speller,
            sampler=sampler,
            dropout=training.dropout,
            seed=training.seed,
            device=group.device,
            precision=training.precision,
        )
        weights = _name_weights(elmo, softmax)
        sparse = [name for name in weights if name.startswith("softmax.")] if sampler else []
        self._sparse = [weights[name] for name in sparse]
        dense = [weight for name, weight in weights.items() if name not in sparse]
        self._sent_dtype = torch.bfloat16 if training.gradients is Precision.BF16 else None
        self._gradient_sum = GradientSum(dense, dtype=self._sent_dtype) if group.size > 1 else None
        self._optimizer = Optimizer(
            weights,
            sparse=sparse,
            settings=settings.optimizer,
            num_steps=self.num_steps,
            rank=group.rank,
            num_processes=group.size,
        )

    def step(self, votes: list[float]) -> StepResult:
        """Run the next step; `votes` are summed over the processes along the way."""
        with self._threads():
            return self._step(votes)

    def _step(self, votes: list[float]) -> StepResult:
        step = self.num_done
        rows = self._num_own_rows
        num_parts = self.settings.training.accumulation
        rows_at_once = rows // num_parts
        negatives = self._objective.draw_negatives(step)
        total, num_predictions = 0.0, 0
        states = []
        for part in range(num_parts):
            first_row = self.group.rank * rows + part * rows_at_once
            window = self.streams.read(
                step + self.settings.training.skip_steps,
                first_row=first_row,
                num_rows=rows_at_once,
            )
            loss = self._objective.compute(
                window,
                self.state[first_row : first_row + rows_at_once],
                negatives,
                step=step,
                first_row=first_row,
            )
            if self._gradient_sum is not None and part == num_parts - 1:
                self._gradient_sum.begin()
            (loss.total * self._scale).backward()
            total += loss.total.item()
            num_predictions += loss.num_predictions
            states.append(loss.state)
        # All communication happens before the weights change: if another process is lost, this one
        # still has a consistent state, that of the last step.
        if self._gradient_sum is not None:
            self._gradient_sum.finish()
        self.group.add_sparse(self._sparse, dtype=self._sent_dtype)
        state = self._gather(join(states))
        total, counted, *sums = self.group.add([total, num_predictions, *votes])
        norm = self._optimizer.prepare(step, share=self.group.add_tensors)
        self.is_consistent = False
        learning_rate = self._optimizer.step(step)
        self.state = state
        self.num_done += 1
        self.is_consistent = True
        return StepResult(
            total_loss=total,
            num_predictions=int(counted),
            gradient_norm=norm,
            learning_rate=learning_rate,
            votes=sums,
        )

    def weights(self) -> dict[str, Tensor]:
        """Return the trained weights by name."""
        return {
            **prefixed("bilm.", self.elmo.bilm.state_dict()),
            **prefixed("softmax.", self.softmax.state_dict()),
        }

    def load_weights(self, tensors: Mapping[str, Tensor]) -> None:
        """Load weights that `weights` returned."""
        load_into(self.elmo.bilm, without_prefix("bilm.", tensors))
        load_into(self.softmax, without_prefix("softmax.", tensors))

    def tensors(self) -> dict[str, Tensor]:
        """Return everything that the next step depends on, except its number."""
        return {
            **self.weights(),
            **prefixed("optimizer.", self._optimizer.tensors()),
            "state.hidden": self.state.hidden,
            "state.cell": self.state.cell,
        }

    def restore(self, tensors: Mapping[str, Tensor], *, num_done: int) -> None:
        """Resume after `num_done` steps with what `tensors` returned then."""
        self.load_weights(tensors)
        self._optimizer.restore(without_prefix("optimizer.", tensors))
        kept = BiLMState(hidden=tensors["state.hidden"], cell=tensors["state.cell"])
        self.state = kept.like(self.state)
        self.num_done = num_done

    @property
    def _scale(self) -> float:
        # Losses are summed over the window and averaged over rows and directions, as in bilm-tf;
        # gradients are summed over parts and processes.
        return 0.5 / self.settings.training.rows

    def _gather(self, state: BiLMState) -> BiLMState:
        return BiLMState(
            hidden=self.group.gather_rows(state.hidden, dim=2),
            cell=self.group.gather_rows(state.cell, dim=2),
        )


def count_steps(settings: PretrainSettings, streams: Streams) -> int:
    """Return the number of steps of a run."""
    by_epochs = max(1, round(settings.training.num_epochs * streams.steps_per_epoch))
    return min(by_epochs, settings.training.max_steps or by_epochs)


def detach_rows(state: BiLMState) -> BiLMState:
    """Copy a state, so that each row has its own memory."""
    return BiLMState(
        hidden=state.hidden.detach().clone().contiguous(),
        cell=state.cell.detach().clone().contiguous(),
    )


def _name_weights(elmo: ElmoModel, softmax: Softmax) -> dict[str, nn.Parameter]:
    return {
        **{f"bilm.{name}": weight for name, weight in elmo.bilm.named_parameters()},
        **{f"softmax.{name}": weight for name, weight in softmax.named_parameters()},
    }
