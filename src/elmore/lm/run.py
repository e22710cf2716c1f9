"""A training run: start or resume, train step by step, and write a model.

A run folder contains settings.json, metrics.jsonl, checkpoints/ and, at the end, model/.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from signal import SIGTERM
from typing import Any, NoReturn

import torch
from torch import Tensor

from elmore.config import StatePolicy
from elmore.corpus.corpus import Corpus
from elmore.corpus.sample import sample_documents
from elmore.corpus.shard_workers import count_cores
from elmore.errors import DataError, ElmoreError, ModelError
from elmore.files.atomic import replace_file, replace_json
from elmore.files.owned_folder import FolderKind
from elmore.files.untrusted import read_json
from elmore.jobs.checkpoint import Checkpoint, Checkpoints, load_tensors, save_tensors
from elmore.jobs.freed_memory import keeping_freed_memory
from elmore.jobs.stopping import StoppedError, StopRequest, listening, resume_hint
from elmore.lm.distributed import Group
from elmore.lm.metrics import HeldoutResult, MetricsLog, RunObserver, RunProgress
from elmore.lm.network import Softmax, make_model, make_softmax
from elmore.lm.perplexity import LossTotals, measure_losses
from elmore.lm.progress import SavedProgress, check_same_run
from elmore.lm.settings import PretrainSettings
from elmore.lm.trainer import Trainer, count_steps
from elmore.model.state import BiLMState
from elmore.text.batches import Document
from elmore.weights.elmo_model import ElmoModel
from elmore.wording import count

SETTINGS, CHECKPOINTS, BEST, MODEL = "settings.json", "checkpoints", "best.safetensors", "model"
MADE_BY = "made_by"


def _is_run_marker(path: Path) -> bool:
    """Check the content: files called settings.json are common."""
    try:
        return MADE_BY in read_json(path)
    except ModelError:
        return False


RUN = FolderKind(
    holds="a training run",
    markers=(SETTINGS,),
    makes=(CHECKPOINTS, "tensorboard", MODEL, "metrics.jsonl", "report.json"),
    ignores=(".*", "corpus", "words.txt"),  # fine-tuning creates the latter two before the run
    is_marker=_is_run_marker,
)


class LostProcessError(ElmoreError):
    """Another process of the run was lost."""

    def __init__(self, *, saved_step: int | None) -> None:
        kept = "no checkpoint yet" if saved_step is None else f"checkpoint at step {saved_step:,}"
        super().__init__(f"another process of this run was lost ({kept}); {resume_hint()}")


class Run:
    """A run in a folder: its trainer, its progress and its observer."""

    def __init__(
        self,
        settings: PretrainSettings,
        corpus: Corpus,
        folder: Path,
        *,
        group: Group,
        observer: RunObserver,
        make_parts: Callable[[], tuple[ElmoModel, Softmax]] | None = None,
        start: str | None = None,
    ) -> None:
        self.settings = settings
        self._start = start  # the fingerprint of the model that training starts from
        self.corpus = corpus
        self.folder = folder
        self.group = group
        self.observer = observer
        set_threads(settings, group)
        elmo, softmax = (make_parts or self._make_parts)()
        self.trainer = Trainer(settings, corpus, elmo, softmax, group=group)
        self.checkpoints = Checkpoints(folder / CHECKPOINTS, keep=settings.run.keep_checkpoints)
        self.progress = SavedProgress()
        self.heldout: list[Document] = sample_documents(
            corpus.heldout, max_tokens=settings.run.heldout_tokens
        )
        self._lines: list[dict[str, Any]] = []  # the metrics of this step
        self._saved_step = -1
        self._saved_at = time.monotonic()

    def begin(self, *, restart: bool) -> None:
        """Resume from the newest checkpoint, if there is one."""
        if restart:
            self.group.run_on_first(lambda: RUN.clear(self.folder))
        checkpoint = self.group.run_on_first(self._find_checkpoint)
        about = None if checkpoint is None else (checkpoint.step, checkpoint.progress)
        found = self.group.share(about)
        # A resumed run may have a different number of steps.
        self.group.run_on_first(self._write_settings)
        if found is None:
            self.trainer.load_weights(self.group.share_tensors(self.trainer.weights()))
            return
        step, kept = found
        self.progress = SavedProgress.from_json(kept["progress"])
        self._lines = kept.get("lines", [])
        tensors = self.group.share_tensors(checkpoint.tensors if checkpoint else {})
        self.trainer.restore(tensors, num_done=step)
        self._saved_step = step
        self.observer.on_message(self._describe_start())

    def _describe_start(self) -> str:
        """Return a message for the user about a resumed or finished run."""
        step, num_steps = self.progress.step, self.trainer.num_steps
        if step < num_steps and not self._is_out_of_patience():
            return f"resuming at step {step:,} of {num_steps:,}"
        model = self.folder / MODEL
        outcome = (
            f"its model is in {model}; measuring it again"
            if model.is_dir()
            else f"writing its model to {model}"
        )
        return f"this run is finished ({step:,} of {count(num_steps, 'step')}); {outcome}"

    def train(self) -> str:
        """Train to the end; return why it ended."""
        with listening() as stop, self._open_metrics() as metrics, keeping_freed_memory():
            try:
                return self._train(metrics, stop)
            except RuntimeError:  # for example, another process does not respond
                if self.group.size > 1:
                    self._save_after_loss()
                raise

    def _train(self, metrics: MetricsLog | None, stop: StopRequest) -> str:
        self._catch_up(metrics)
        while self.progress.step < self.trainer.num_steps and not self._is_out_of_patience():
            started = time.perf_counter()
            # Processes vote on when to stop and when to save: any of them may get a signal, and the
            # first watches the clock.
            result = self.trainer.step([float(stop.signal is not None), float(self._is_save_due())])
            self._lines = []
            progress = self.progress
            progress.step += 1
            progress.tokens += result.num_predictions
            progress.loss += result.total_loss
            progress.loss_tokens += result.num_predictions
            progress.seconds += time.perf_counter() - started
            self.observer.on_step(self._describe(progress))
            is_last = progress.step == self.trainer.num_steps  # a short run has only this line
            if progress.step % self.settings.run.log_steps == 0 or is_last:
                self._log(metrics, result.learning_rate, result.gradient_norm)
            if result.votes[0]:
                # A measurement that is due may take longer than the sender of the signal will wait;
                # it is made when the run resumes.
                self._stop(stop)
            if self._is_heldout_due():
                self._measure(metrics)
            steps = self.settings.run.checkpoint_steps
            if result.votes[1] or (steps and progress.step % steps == 0):
                self.save()
        self.save()
        if any(self.group.add([float(stop.signal is not None)])):
            self._stop(stop)
        reason = (
            f"held-out perplexity has not fallen since step {self.progress.best_step}"
            if self._is_out_of_patience()
            else "all steps taken"
        )
        self._write_line(metrics, "end", seconds=self.progress.seconds, reason=reason)
        return reason

    def _stop(self, stop: StopRequest) -> NoReturn:
        self.save()
        raise StoppedError(step=self.progress.step, signal_number=int(stop.signal or SIGTERM))

    def save(self) -> None:
        """Write a checkpoint, unless this step already has one."""
        if self._saved_step != self.progress.step:
            self.group.run_on_first(self._write_checkpoint)
            self._saved_step = self.progress.step
            self.observer.on_checkpoint(self.progress.step)
        self._saved_at = time.monotonic()

    def load_best_weights(self) -> int:
        """Load the weights of the best measurement if `run.patience` is set; return their step.

        Otherwise keep the weights of the last step.
        """
        if self.settings.run.patience is not None:
            best = self.group.share_tensors(self.group.run_on_first(self._read_best) or {})
            if best:
                self.trainer.load_weights(best)
                return self.progress.best_step
        return self.progress.step

    def measure(
        self,
        documents: Sequence[Document],
        *,
        state: StatePolicy = StatePolicy.DOCUMENT,
        initial_state: BiLMState | None = None,
    ) -> LossTotals:
        """Measure the loss on documents, divided among the processes."""
        trainer = self.trainer
        trainer.elmo.eval()
        totals = measure_losses(
            trainer.elmo,
            trainer.softmax,
            self.corpus.vocabulary,
            documents=documents[self.group.rank :: self.group.size],
            state=state,
            initial_state=initial_state,
        )
        trainer.elmo.train()
        sums = self.group.add([float(number) for number in asdict(totals).values()])
        return LossTotals.from_numbers(sums)

    def _make_parts(self) -> tuple[ElmoModel, Softmax]:
        elmo = make_model(self.settings, self.corpus)
        return elmo, make_softmax(self.settings, elmo.config, counts=self.corpus.counts)

    def _find_checkpoint(self) -> Checkpoint | None:
        checkpoint = self.checkpoints.read_newest(on_message=self.observer.on_message)
        if checkpoint is not None:
            kept = checkpoint.progress
            check_same_run(
                self.settings,
                self.corpus.fingerprint,
                kept,
                start=self._start,
                folder=self.folder,
                num_done=checkpoint.step,
                count_steps=lambda settings: count_steps(settings, self.trainer.streams),
            )
        self.checkpoints.remove_leftovers(newest=-1 if checkpoint is None else checkpoint.step)
        return checkpoint

    def _catch_up(self, metrics: MetricsLog | None) -> None:
        """Finish what was due at the checkpoint's step but was cut off when a process was lost."""
        if metrics is not None:
            for line in self._lines:
                metrics.write(line["kind"], **_without_kind(line))
        is_measured = any(line["kind"] == "heldout" for line in self._lines)
        if self.progress.step and self._is_heldout_due() and not is_measured:
            self._measure(metrics)

    def _open_metrics(self) -> Any:
        if not self.group.is_first:
            return nullcontext()
        return MetricsLog.open(
            self.folder, at_step=self.progress.step, tensorboard=self.settings.run.tensorboard
        )

    def _is_save_due(self) -> bool:
        minutes = (time.monotonic() - self._saved_at) / 60
        return self.group.is_first and minutes >= self.settings.run.checkpoint_minutes

    def _is_heldout_due(self) -> bool:
        step = self.progress.step
        is_last = step == self.trainer.num_steps
        return bool(self.heldout) and (step % self.settings.run.heldout_steps == 0 or is_last)

    def _is_out_of_patience(self) -> bool:
        patience = self.settings.run.patience
        return patience is not None and self.progress.measurements_since_best >= patience

    def _log(self, metrics: MetricsLog | None, learning_rate: float, gradient_norm: float) -> None:
        progress = self.progress
        seconds = progress.seconds - progress.loss_seconds
        self._write_line(
            metrics,
            "train",
            loss=progress.mean_loss,
            seconds=progress.seconds,
            tokens_per_second=progress.loss_tokens / seconds if seconds else 0.0,
            learning_rate=learning_rate,
            gradient_norm=gradient_norm,
        )
        progress.loss, progress.loss_tokens = 0.0, 0
        progress.loss_seconds = progress.seconds

    def _write_line(self, metrics: MetricsLog | None, kind: str, **numbers: Any) -> None:
        """Write to the metrics, and keep the line for a checkpoint of this step.

        All processes know the numbers. If the first is lost before it writes the line, another one
        may still write the checkpoint.
        """
        progress = self.progress
        line = {"kind": kind, "step": progress.step, "tokens": progress.tokens, **numbers}
        self._lines.append(line)
        if metrics is not None:
            metrics.write(kind, **_without_kind(line))

    def _measure(self, metrics: MetricsLog | None) -> None:
        started = time.perf_counter()
        self.observer.on_stage("measuring held-out perplexity")
        totals = self.measure(self.heldout)
        progress = self.progress
        # Write the weights before recording the result: if a process is lost in between, the
        # measurement is repeated.
        if progress.is_best(totals.perplexity) and self.settings.run.patience is not None:
            self.group.run_on_first(self._write_best)
        progress.note_heldout(totals.perplexity)
        seconds = time.perf_counter() - started
        progress.seconds += seconds
        progress.loss_seconds += seconds  # do not count this as training time
        result = HeldoutResult(
            step=progress.step,
            tokens=progress.tokens,
            seconds=progress.seconds,
            forward_perplexity=totals.forward_perplexity,
            backward_perplexity=totals.backward_perplexity,
            perplexity=totals.perplexity,
            num_predictions=totals.num_predictions,
        )
        self._write_line(metrics, "heldout", **asdict(result))
        self.observer.on_stage("measuring held-out perplexity", 1.0)
        self.observer.on_heldout(result)

    def _describe(self, progress: SavedProgress) -> RunProgress:
        num_steps = self.trainer.num_steps
        left = progress.seconds / progress.step * (num_steps - progress.step)
        seconds = progress.seconds - progress.loss_seconds
        return RunProgress(
            step=progress.step,
            num_steps=num_steps,
            tokens=progress.tokens,
            num_tokens=round(progress.tokens / progress.step * num_steps),
            loss=progress.mean_loss,
            perplexity=progress.perplexity,
            tokens_per_second=progress.loss_tokens / seconds if seconds else 0.0,
            seconds_left=left,
        )

    def _write_settings(self) -> None:
        replace_json(
            self.folder / SETTINGS, {MADE_BY: "elmore pretrain", **self.settings.to_json()}
        )

    def _write_checkpoint(self) -> None:
        self.checkpoints.write(
            self.progress.step,
            self.trainer.tensors(),
            {
                "progress": self.progress.to_json(),
                "settings": self.settings.to_json(),
                "corpus": self.corpus.fingerprint,
                "start": self._start,
                "num_processes": self.group.size,
                "lines": self._lines,
            },
        )

    def _read_best(self) -> dict[str, Tensor]:
        best = self.folder / CHECKPOINTS / BEST
        try:
            return load_tensors(best) if best.exists() else {}
        except DataError as error:
            self.observer.on_message(f"{error}; using the weights of the last step instead")
            return {}

    def _write_best(self) -> None:
        with replace_file(self.folder / CHECKPOINTS / BEST) as temporary:
            save_tensors(temporary, self.trainer.weights())

    def _save_after_loss(self) -> None:
        """Write a checkpoint after a process was lost; other processes may try the same."""
        if self.trainer.is_consistent and self.progress.step not in self.checkpoints.steps():
            with suppress(DataError):  # another process is writing the same one
                self._write_checkpoint()


def _without_kind(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name != "kind"}


def set_threads(settings: PretrainSettings, group: Group) -> None:
    """Divide the cores among a machine's processes; torchrun would give each a single thread."""
    if settings.run.threads is not None:
        torch.set_num_threads(settings.run.threads)
    elif group.num_local > 1:
        torch.set_num_threads(max(1, count_cores() // group.num_local))
