"""The training loop of all tasks: epochs until the dev score stops rising.

    for each epoch:
        for each batch of training examples: loss, gradient, optimizer step
        score the dev examples; keep the weights if the main score is the best so far
        write a checkpoint
    load the best weights

The task itself (`tasks/task.py`) is used only through `TaskModel` (`fit/model.py`): `loss` of a
list of examples, and `score`. A new task needs no change here.

A run can be stopped or killed at any time. Rerunning it resumes from the newest checkpoint and
gives the same weights, bit for bit, because no random state is carried over: the batches of an
epoch depend only on the seed and the epoch (`fit/batches.py`), and dropout only on the seed and the
step.
"""

import math
import time
from pathlib import Path

import torch
from torch import Tensor

from elmore.errors import ConfigError, DataError
from elmore.files.atomic import replace_file
from elmore.jobs.checkpoint import (
    Checkpoints,
    load_into,
    load_tensors,
    prefixed,
    save_tensors,
    without_prefix,
)
from elmore.jobs.stopping import StoppedError, StopRequest, listening
from elmore.tasks.fit.batches import shuffle_epoch
from elmore.tasks.fit.data import TaskData
from elmore.tasks.fit.model import TaskModel, find_batch_size
from elmore.tasks.fit.optimizer import TaskOptimizer
from elmore.tasks.fit.progress import EpochResult, FitObserver, FitProgress
from elmore.tasks.inputs.trained_layers import TrainedLayers

CHECKPOINTS, BEST_PATTERN = "checkpoints", "best-*.safetensors"

# Each step adds this to the seed; prime, so that few runs with different seeds share numbers.
_SEED_STRIDE = 1_000_003


class FitRun:
    """One training run of one network, in its own folder."""

    def __init__(
        self,
        model: TaskModel,
        data: TaskData,
        folder: Path,
        *,
        chosen: list[int],  # of the training examples
        observer: FitObserver,
    ) -> None:
        self.model = model
        self.data = data
        self.folder = folder
        self.observer = observer
        self.training = model.settings.training
        self.layers = model.layers if isinstance(model.layers, TrainedLayers) else None
        self.optimizer = TaskOptimizer(
            model.network, self.layers, training=self.training, elmo=model.settings.elmo
        )
        self.checkpoints = Checkpoints(folder / CHECKPOINTS, keep=1)
        self.progress = FitProgress()
        self.chosen = chosen
        self._saved_at = time.monotonic()

    def train(self) -> None:
        """Train to the end, from the newest checkpoint if there is one, and load the best weights.

        This seeds torch's global random generator; the caller restores it if needed.
        """
        self._resume()
        with listening() as request:
            while not self._is_finished():
                self._train_epoch(request)
                self._end_epoch()
                self._stop_if_requested(request)
        self._load_weights(load_tensors(self._best_path()))

    def _is_finished(self) -> bool:
        progress = self.progress
        has_lost_patience = progress.num_worse >= self.training.patience
        return progress.epoch >= self.training.max_epochs or has_lost_patience

    def _train_epoch(self, request: StopRequest) -> None:
        progress, seed = self.progress, self.training.seed
        batches = shuffle_epoch(
            self.data.train.lengths[self.chosen],
            batch_size=find_batch_size(self.model.settings),
            max_tokens=self.training.max_batch_tokens,
            min_steps=self.training.min_epoch_steps,
            seed=seed,
            epoch=progress.epoch,
        )
        self.model.network.train()
        for batch in batches[progress.epoch_step :]:
            began = time.perf_counter()
            self.optimizer.unfreeze(progress.epoch + progress.epoch_step / len(batches))
            torch.manual_seed(seed * _SEED_STRIDE + progress.step)
            examples = [self.data.train[self.chosen[index]] for index in batch]
            loss = self.model.loss(examples)
            value = loss.item()
            if not math.isfinite(value):
                raise ConfigError(
                    f"the loss is {value} at step {progress.step + 1}, so the run has "
                    "diverged; start over (--restart) with a smaller training.learning_rate"
                )
            self.optimizer.step(loss, rate_share=progress.rate_share)
            progress.step += 1
            progress.epoch_step += 1
            progress.loss_sum += value
            progress.seconds += time.perf_counter() - began
            self.observer.on_step(progress, num_steps=len(batches), loss=value)
            self._checkpoint(request)

    def _end_epoch(self) -> None:
        progress = self.progress
        began = time.perf_counter()
        score = self.model.score(self.data.dev)[self.model.task.main_score]
        progress.seconds += time.perf_counter() - began
        progress.epoch += 1
        is_best = progress.best_score is None or score > progress.best_score
        if is_best:
            progress.best_score, progress.best_epoch, progress.num_worse = score, progress.epoch, 0
            with replace_file(self._best_path()) as temporary:
                save_tensors(temporary, self._weights())
        else:
            progress.num_worse += 1
            if self.training.halve_after and progress.num_worse % self.training.halve_after == 0:
                progress.rate_share /= 2
        point = EpochResult(
            epoch=progress.epoch,
            step=progress.step,
            loss=progress.loss_sum / max(1, progress.epoch_step),
            dev=score,
            seconds=progress.seconds,
            rate_share=progress.rate_share,
        )
        progress.curve.append(point)
        progress.epoch_step, progress.loss_sum = 0, 0.0
        self.observer.on_epoch(point, is_best=is_best)
        self._save()
        # Only now: until the new checkpoint was written, resuming needed the previous best weights.
        for path in self.folder.glob(BEST_PATTERN):
            if path != self._best_path():
                path.unlink()

    def _best_path(self) -> Path:
        return self.folder / BEST_PATTERN.replace("*", str(self.progress.best_epoch))

    def _checkpoint(self, request: StopRequest) -> None:
        """Write a checkpoint if one is due or a stop was requested, and stop if requested."""
        is_due = time.monotonic() - self._saved_at >= 60 * self.training.checkpoint_minutes
        if is_due or request.signal is not None:
            self._save()
        self._stop_if_requested(request)

    def _stop_if_requested(self, request: StopRequest) -> None:
        if request.signal is not None:
            raise StoppedError(step=self.progress.step, signal_number=request.signal)

    def _save(self) -> None:
        tensors = self._weights() | prefixed("optimizer.", self.optimizer.tensors())
        self.checkpoints.write(self.progress.step, tensors, self.progress.to_json())
        self._saved_at = time.monotonic()

    def _resume(self) -> None:
        checkpoint = self.checkpoints.read_newest(on_message=self.observer.on_message)
        if checkpoint is None:
            return
        self.progress = FitProgress.from_json(checkpoint.progress)
        self.observer.on_message(f"resuming at step {self.progress.step:,}")
        try:
            self._load_weights(checkpoint.tensors)
            self.optimizer.load(without_prefix("optimizer.", checkpoint.tensors))
        except (RuntimeError, KeyError, IndexError, ValueError) as error:
            reason = " ".join(str(error).split())  # torch's messages have several lines
            raise DataError(
                f"the checkpoint in {self.folder} does not fit this network, or was written by "
                f"another version ({reason:.200}); start over with --restart"
            ) from error

    def _weights(self) -> dict[str, Tensor]:
        weights = prefixed("network.", self.model.network.state_dict())
        if self.layers is not None:
            weights |= prefixed("bilm.", self.layers.elmo.bilm.state_dict())
        return weights

    def _load_weights(self, weights: dict[str, Tensor]) -> None:
        load_into(self.model.network, without_prefix("network.", weights))
        if self.layers is not None:
            load_into(self.layers.elmo.bilm, without_prefix("bilm.", weights))
