"""Train a task network with and without ELMo, over seeds and fractions of the training data."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from elmore.comparison.results import Comparison, RunResult
from elmore.errors import ConfigError, DataError, DataWarning
from elmore.files.owned_folder import FolderKind
from elmore.jobs.device import read_device
from elmore.tasks.data.parts import Parts
from elmore.tasks.fit.batches import draw_examples
from elmore.tasks.fit.data import TaskData, read_data
from elmore.tasks.fit.elmo import ElmoChoice, LayerOpener
from elmore.tasks.fit.fit import FitReport, fit_task
from elmore.tasks.fit.model import check_input, make_task
from elmore.tasks.fit.plausibility import check_data
from elmore.tasks.fit.progress import FitObserver
from elmore.tasks.fit.settings import ElmoPlace, FitSettings, read_settings
from elmore.wording import count

# Changes to the [elmo] settings in each variant.
VARIANTS: dict[str, dict[str, Any]] = {
    "without": {"where": "none"},
    "input": {"where": "input"},
    "output": {"where": "output"},
    "both": {"where": "both"},
    "top": {"layers": "top"},
    "average": {"layers": "average"},
    "finetuned": {"training": "task"},
    "domain": {},  # `_change` sets the epochs of fine-tuning
}
RUNS = "runs"
COMPARISON = FolderKind(holds="a comparison", markers=(RUNS,), is_marker=Path.is_dir)
# Epochs of fine-tuning a biLM on the task's text, if the settings have none.
DOMAIN_EPOCHS = 1.0


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One training run of a comparison."""

    variant: str
    share: float
    seed: int
    settings: FitSettings

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.variant}-{100 * self.share:g}%-seed{self.seed}"

    @property
    def reads_text_first(self) -> bool:
        """Whether its biLM is fine-tuned on the task's text."""
        elmo = self.settings.elmo
        return elmo.where is not ElmoPlace.NONE and elmo.finetune_epochs > 0

    def find_folder(self, comparison: Path) -> Path:
        """Return its folder within that of the comparison."""
        return comparison / RUNS / self.name


def plan_runs(
    settings: FitSettings,
    *,
    variants: Sequence[str],
    shares: Sequence[float],
    num_seeds: int,
) -> list[PlannedRun]:
    """Return all training runs, ordered by seed.

    So a comparison that is stopped halfway already has results for the first seeds.
    """
    known = f"choose from: {', '.join(VARIANTS)}"
    if not variants:
        raise ConfigError(f"no variants given; {known}")
    for variant in variants:
        if variant not in VARIANTS:
            raise ConfigError(f"unknown variant {variant!r:.60}; {known}")
    if settings.elmo.where is ElmoPlace.NONE:
        raise ConfigError(
            "elmo.where is 'none', so no variant would use ELMo; remove this setting (the variant "
            "'without' trains without ELMo)"
        )
    if settings.training.share != 1.0:
        raise ConfigError(
            f"training.share is {settings.training.share}, but a comparison sets its own shares; "
            f"use --shares {100 * settings.training.share:g} instead"
        )
    runs = [
        PlannedRun(
            variant=variant,
            share=share,
            seed=seed,
            settings=_change(settings, variant=variant, share=share, seed=seed),
        )
        for seed in range(settings.training.seed, settings.training.seed + num_seeds)
        for share in shares
        for variant in variants
    ]
    for run in runs[: len(variants)]:  # the others differ only in seed and share
        check_input(run.settings)
    # A variant or share that was given twice is trained once.
    return list({run.name: run for run in runs}.values())


def _change(settings: FitSettings, *, variant: str, share: float, seed: int) -> FitSettings:
    values = settings.to_json()
    values["elmo"] |= VARIANTS[variant]
    if variant == "domain":
        values["elmo"]["finetune_epochs"] = settings.elmo.finetune_epochs or DOMAIN_EPOCHS
    values["training"] |= {"share": share, "seed": seed}
    return read_settings(values)


def run_comparison(
    runs: Sequence[PlannedRun],
    parts: Parts,
    folder: Path,
    *,
    elmo: ElmoChoice,
    observer: FitObserver | None = None,
    on_run: Callable[[int, PlannedRun], None] = lambda _number, _run: None,
    restart: bool = False,
    accept: bool = False,
    device: str = "cpu",
) -> Iterator[tuple[PlannedRun, FitReport]]:
    """Train what is not trained yet, each run in its own folder; yield each report.

    Implausible data raises an `ImplausibleDataError` unless `accept`.
    """
    COMPARISON.check(folder)
    read_device(device)  # fail before the data is read
    observer = observer or FitObserver()
    choice = replace(elmo, domain=elmo.domain or folder.resolve() / "domain")
    task = make_task(runs[0].settings)
    data = read_data(task, parts, on_stage=observer.on_stage)
    with_elmo = next(
        (run for run in runs if run.settings.elmo.where is not ElmoPlace.NONE), runs[0]
    )
    check_data(
        task,
        data,
        seen_characters=choice.find_seen_characters(with_elmo.settings.elmo),
        accept=accept,
        on_message=observer.on_message,
    )
    _check_draws(runs, data)
    transfers = [number for number, run in enumerate(runs) if run.reads_text_first]
    if transfers:
        _check_transfer(runs[transfers[0]], choice, folder, restart=restart)
    renewing = replace(choice, renews_domain=True)
    for number, run in enumerate(runs):
        on_run(number, run)
        report = fit_task(
            run.settings,
            parts,
            run.find_folder(folder),
            # The first such run fine-tunes the biLM that the others use.
            elmo=renewing if number in transfers[:1] else choice,
            data=data,
            observer=observer,
            restart=restart,
            device=device,
        )
        yield run, report


def _check_draws(runs: Sequence[PlannedRun], data: TaskData) -> None:
    """Raise an error now if a sample is too small to learn from, rather than hours later."""
    draws = {(run.share, run.seed): run for run in runs}
    for (share, seed), run in draws.items():
        training = run.settings.training
        chosen = draw_examples(len(data.train), share=share, most=training.max_examples, seed=seed)
        if len(chosen) == len(data.train):
            continue  # problems of the whole data are reported elsewhere
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # each run prints its own
                make_task(run.settings).find_labels(data.train[number] for number in chosen)
        except DataError as error:
            most = training.max_examples
            is_limited = most is not None and len(chosen) == most
            drawn = f"training.max_examples = {most}" if is_limited else f"{100 * share:g} %"
            raise DataError(
                f"{drawn} of the training data ({count(len(chosen), 'example')}, drawn with seed "
                f"{seed}) is too little; use more: {error}"
            ) from None


def _check_transfer(run: PlannedRun, choice: ElmoChoice, folder: Path, *, restart: bool) -> None:
    """Raise an error before any training if the biLM cannot be fine-tuned."""
    opener = LayerOpener(
        run.settings.elmo, choice, folder=run.find_folder(folder), observer=FitObserver()
    )
    opener.check(is_cleared=restart)


def summarize(
    finished: Sequence[tuple[PlannedRun, FitReport]],
    settings: FitSettings,
    *,
    elmo: str,
    fingerprint: str,
) -> Comparison:
    """Collect the results of all training runs."""
    reports = [report for _, report in finished]
    full = max(finished, key=lambda pair: pair[0].share)[1]
    perplexity = next((report.perplexity for report in reports if report.perplexity), None)
    return Comparison(
        task=settings.kind,
        main_score=full.main_score,
        elmo=elmo,
        elmo_fingerprint=fingerprint,
        words=_name_words(settings),
        num_examples=full.num_examples,
        perplexity=perplexity,
        settings=settings.to_json(),
        runs=[_to_result(run, report) for run, report in finished],
    )


def _name_words(settings: FitSettings) -> str:
    if settings.words.file:
        return Path(settings.words.file).name
    return "learned" if settings.words.dim else "none"


def _to_result(run: PlannedRun, report: FitReport) -> RunResult:
    return RunResult(
        variant=run.variant,
        share=run.share,
        seed=run.seed,
        num_train=report.num_examples["train"],
        scores=report.scores,
        curve=report.curve,
        layer_shares=report.layer_shares,
        scale=report.scale,
        best_epoch=report.best_epoch,
        seconds=report.seconds,
        num_parameters=report.num_parameters,
        constant_scores=report.constant_scores,
    )
