"""From files to a trained task network: read, check, train, score, save."""

import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmore.errors import DataError, DataWarning, warn_caller
from elmore.files.atomic import refuse_broken_links, replace_json
from elmore.files.untrusted import read_json
from elmore.jobs.device import read_device
from elmore.jobs.stopping import stopping_at_once
from elmore.tasks.data.lines import quote
from elmore.tasks.data.parts import Parts
from elmore.tasks.fit.batches import draw_examples
from elmore.tasks.fit.data import TaskData, find_sentences, read_data
from elmore.tasks.fit.elmo import ElmoChoice, LayerOpener
from elmore.tasks.fit.folder import save_task_model
from elmore.tasks.fit.model import TaskModel, find_words, make_task
from elmore.tasks.fit.plan import (
    PLAN,
    REPORT,
    TRAINING,
    Plan,
    check_plan,
    make_plan,
    remove_leftovers,
    write_plan,
)
from elmore.tasks.fit.plausibility import check_data
from elmore.tasks.fit.progress import EpochResult, FitObserver, FitProgress
from elmore.tasks.fit.run import FitRun
from elmore.tasks.fit.settings import FitSettings
from elmore.tasks.fit.text_language import choose_language
from elmore.tasks.fit.threads import choose_threads, using_threads
from elmore.tasks.inputs.word_table import ChosenWords
from elmore.tasks.metrics.ratios import is_above_constant
from elmore.tasks.metrics.tag_schemes import TagScheme
from elmore.tasks.task import Labels, Scores, Task


@dataclass(frozen=True, kw_only=True)
class FitReport:
    """The result of a training run."""

    kind: str
    main_score: str
    scores: dict[str, Scores]  # by part: dev, and test if there is one
    num_examples: dict[str, int]
    curve: list[EpochResult]
    best_epoch: int
    seconds: float
    num_parameters: int
    layer_shares: dict[str, list[float]]  # by mix: below, above
    scale: dict[str, float]
    perplexity: dict[str, float] | None = (
        None  # of the biLM, before and after fine-tuning on the task's text
    )
    constant_scores: dict[str, float] = field(default_factory=dict)
    """By part, the best main score of a constant prediction; empty in old reports."""

    def has_learned(self, part: str) -> bool:
        """Return whether the network beats a constant prediction; True if that is unknown."""
        score = self.scores[part][self.main_score]
        return is_above_constant(score, self.constant_scores.get(part)) is not False

    def to_json(self) -> dict[str, Any]:
        """Return the report for JSON; `from_json` reads it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "FitReport":
        """Read what `to_json` returned."""
        return cls(**{**values, "curve": [EpochResult(**point) for point in values["curve"]]})


def fit_task(
    settings: FitSettings,
    parts: Parts,
    folder: str | Path,
    *,
    elmo: ElmoChoice | None = None,
    data: TaskData | None = None,
    observer: FitObserver | None = None,
    restart: bool = False,
    accept: bool = False,
    device: str = "cpu",
) -> FitReport:
    """Train a task network in `folder`, or resume; if it is already trained, return its report.

    Data that looks wrong, such as typos in labels, raises an `ImplausibleDataError` unless
    `accept`. `data` has the examples of `parts` if the caller has already read and checked them.
    """
    refuse_broken_links(Path(folder))
    folder = Path(folder).resolve()  # stored paths must be valid in any working directory
    settings = settings.with_absolute_paths()
    observer = observer or FitObserver()
    elmo = elmo or ElmoChoice()
    plan = make_plan(settings, parts, elmo=elmo.describe(settings.elmo))
    with TRAINING.hold(folder):
        if not restart and (finished := _find_finished(folder, plan)) is not None:
            return finished
        # The caller's random state is restored afterwards.
        with torch.random.fork_rng(devices=[]):
            prepared = _prepare(
                settings,
                parts,
                folder,
                elmo,
                data,
                observer,
                device,
                restart=restart,
                accept=accept,
            )
            # All input has been checked; only now is anything written or removed.
            if restart:
                TRAINING.clear(folder)
                if elmo.renews_domain and settings.elmo.finetune_epochs:
                    shutil.rmtree(prepared.opener.domain, ignore_errors=True)
            write_plan(folder, plan)
            return _train(settings, prepared, folder, observer)


@dataclass(frozen=True, kw_only=True)
class _Prepared:
    """Everything that a training run needs."""

    task: Task
    data: TaskData
    chosen: list[int]  # indices of training examples
    labels: Labels
    words: ChosenWords
    opener: LayerOpener
    random_state: Tensor
    device: torch.device


def _prepare(
    settings: FitSettings,
    parts: Parts,
    folder: Path,
    elmo: ElmoChoice,
    data: TaskData | None,
    observer: FitObserver,
    device: str,
    *,
    restart: bool,
    accept: bool,
) -> _Prepared:
    """Read and check everything that a training run needs; nothing is written."""
    checked_device = read_device(device)
    task = make_task(settings)
    opener = LayerOpener(
        settings.elmo, elmo, folder=folder, observer=observer, device=checked_device
    )
    # A biLM fine-tuned in this folder is removed with the rest of it.
    is_cleared = restart and (elmo.domain is None or elmo.renews_domain)
    opener.check(is_cleared=is_cleared)
    is_checked = data is not None
    data = data or read_data(task, parts, on_stage=observer.on_stage)
    if not is_cleared:
        opener.check_text(task, data)
    training = settings.training
    chosen = draw_examples(
        len(data.train), share=training.share, most=training.max_examples, seed=training.seed
    )
    labels = task.find_labels(_pick(data, chosen))
    has_all_labels = len(chosen) == len(data.train)
    if has_all_labels:
        _warn_of_unknown_labels(task, data, labels)
    observer.on_stage("choosing words")
    torch.manual_seed(training.seed)
    words = find_words(settings, find_sentences(task, _pick(data, chosen)))
    if not is_checked:  # last, so that its messages are right above the training progress
        check_data(
            task,
            data,
            labels=labels if has_all_labels else None,
            seen_characters=elmo.find_seen_characters(settings.elmo),
            accept=accept,
            on_message=observer.on_message,
        )
    return _Prepared(
        task=task,
        data=data,
        chosen=chosen,
        labels=labels,
        words=words,
        opener=opener,
        random_state=torch.get_rng_state(),
        device=checked_device,
    )


def _choose_embedded(settings: FitSettings, data: TaskData) -> list[int] | None:
    """Return the training examples whose layers are computed and cached; None for all.

    Trainings on different shares of the data use the same cache file, so it has the examples of
    the largest share.
    """
    training = settings.training
    if training.max_examples is None:
        return None
    return draw_examples(len(data.train), share=1.0, most=training.max_examples, seed=training.seed)


def _warn_of_unknown_labels(task: Task, data: TaskData, labels: Labels) -> None:
    for name in ("dev", "test"):
        try:
            found = task.find_labels(iter(data.parts.get(name, ())))
        except DataError:  # about training on them, which is not planned
            continue
        # Parts may use different tag schemes.
        unknown = [label for label in found if label not in (*labels, *TagScheme)]
        if unknown:
            shown = ", ".join(map(quote, unknown[:5])) + (", ..." if len(unknown) > 5 else "")
            warn_caller(
                f"{name} has labels that do not occur in training and cannot be predicted: {shown}",
                DataWarning,
            )


def _pick(data: TaskData, chosen: list[int]) -> Iterator[Any]:
    return (data.train[number] for number in chosen)


def _train(
    settings: FitSettings, prepared: _Prepared, folder: Path, observer: FitObserver
) -> FitReport:
    data, opener = prepared.data, prepared.opener
    layers = opener.open(prepared.task, data, chosen=_choose_embedded(settings, data))
    # So that the initial weights do not depend on random numbers drawn for the biLM.
    torch.set_rng_state(prepared.random_state)
    training_sentences = find_sentences(prepared.task, _pick(data, prepared.chosen))
    model = TaskModel(
        choose_language(settings, training_sentences),
        labels=prepared.labels,
        words=prepared.words,
        layers=layers,
        device=prepared.device,
    )
    run = FitRun(model, data, folder, chosen=prepared.chosen, observer=observer)
    with using_threads(choose_threads(settings)):
        run.train()
    scores: dict[str, Scores] = {}
    with stopping_at_once(step=run.progress.step):
        for name in ("dev", "test"):
            if name in data.parts:
                observer.on_stage(f"scoring {name}")
                scores[name] = model.score(data.parts[name])
        num_train = len(prepared.chosen)
        report = _describe(model, run.progress, scores, data, num_train=num_train, opener=opener)
        save_task_model(model, folder, elmo=opener.source)
        replace_json(folder / REPORT, report.to_json())
    remove_leftovers(folder)
    return report


def _describe(
    model: TaskModel,
    progress: FitProgress,
    scores: dict[str, Scores],
    data: TaskData,
    *,
    num_train: int,
    opener: LayerOpener,
) -> FitReport:
    return FitReport(
        kind=model.settings.kind,
        main_score=model.task.main_score,
        scores=scores,
        num_examples={**{name: len(part) for name, part in data.parts.items()}, "train": num_train},
        curve=progress.curve,
        best_epoch=progress.best_epoch,
        seconds=progress.seconds,
        num_parameters=model.num_parameters,
        layer_shares={name: mix.shares for name, mix in model.mixes.items()},
        scale={name: mix.mix.scale.item() for name, mix in model.mixes.items()},
        perplexity=opener.perplexity,
        constant_scores={name: model.task.score_constant(data.parts[name]) for name in scores},
    )


def _find_finished(folder: Path, plan: Plan) -> FitReport | None:
    """Return the report of a finished training; refuse a folder of a different training."""
    if not (folder / PLAN).is_file():
        return None
    check_plan(folder, plan)
    if not (folder / REPORT).is_file():
        return None
    remove_leftovers(folder)  # of a process that was killed just before the end
    try:
        return FitReport.from_json(read_json(folder / REPORT))
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{folder / REPORT} is damaged ({error!s:.200}); start over with --restart"
        ) from None
