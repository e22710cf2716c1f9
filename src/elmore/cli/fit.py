"""`elmore fit`: train a task network, with or without ELMo vectors."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmore.cli import options, task_options
from elmore.cli.display import report_interrupt
from elmore.cli.fit_display import FitDisplay
from elmore.comparison.layers import name_position
from elmore.errors import ConfigError
from elmore.wording import count

if TYPE_CHECKING:
    from elmore.tasks.fit.fit import FitReport


def fit(
    task: task_options.TaskName,
    data: task_options.Data = None,
    out: Annotated[
        Path | None,
        options.make_out_option("Folder for the trained task. Default: the task's name."),
    ] = None,
    train: task_options.Train = None,
    dev: task_options.Dev = None,
    test: task_options.Test = None,
    elmo: task_options.Elmo = None,
    without_elmo: Annotated[
        bool, typer.Option("--without-elmo", help="Train without ELMo vectors.")
    ] = False,
    words: task_options.Words = None,
    settings_path: task_options.Settings = None,
    changes: options.Changes = None,
    restart: options.Restart = False,
    accept: task_options.Accept = False,
    device: options.Device = "cpu",
    as_json: options.Json = False,
) -> None:
    """Train a network for a task, with ELMo vectors at its input, its output, or both.

    The command first shows what it read, and stops if the data looks wrong (see --accept). The biLM
    is frozen, and its layers are computed once and cached on disk; --set elmo.training=task trains
    it too. To resume after an interruption, rerun the command.

    For example:

        elmore fit ner --data conll2003/ --words glove.6B.50d.txt

        elmore fit texts --train reviews.tsv --dev dev.tsv --set elmo.where=both

        elmore predict entities/ letter.txt
    """
    if without_elmo and elmo is not None:
        raise ConfigError("--without-elmo contradicts --model; give one of them")
    if without_elmo and any(change.strip().startswith("elmo.") for change in changes or []):
        raise ConfigError("--without-elmo contradicts --set elmo...; give one of them")
    from elmore.tasks.fit.elmo import ElmoChoice  # noqa: PLC0415  brings torch
    from elmore.tasks.fit.fit import fit_task  # noqa: PLC0415
    from elmore.tasks.fit.model import make_task  # noqa: PLC0415
    from elmore.tasks.fit.named_task import open_task  # noqa: PLC0415
    from elmore.tasks.fit.plan import REPORT  # noqa: PLC0415

    settings, parts = open_task(
        task,
        data=data,
        train=train,
        dev=dev,
        test=test,
        words=words,
        config=settings_path,
        changes=[*(changes or []), *(["elmo.where=none"] if without_elmo else [])],
    )
    folder = out or Path(settings.kind)
    display = FitDisplay(score_name=make_task(settings).main_score)
    was_done = not restart and (folder / REPORT).is_file()
    with report_interrupt(restart=restart), display.shown():
        report = fit_task(
            settings,
            parts,
            folder,
            elmo=ElmoChoice(name=elmo),
            observer=display,
            restart=restart,
            accept=accept,
            device=device,
        )
    if as_json:
        print(json.dumps({"folder": str(folder), **report.to_json()}))
    else:
        _print_report(report, folder, note="; already trained" if was_done else "")


def _print_report(report: "FitReport", folder: Path, *, note: str) -> None:
    print(f"{folder}: {report.kind}, best epoch {report.best_epoch} of {len(report.curve)}{note}")
    for part, scores in report.scores.items():
        shown = ", ".join(f"{name} {score:.2f}" for name, score in scores.items())
        print(f"  {part} ({count(report.num_examples[part], 'example')}): {shown}")
    for position, shares in report.layer_shares.items():
        shown = ", ".join(f"{share:.3f}" for share in shares)
        print(
            f"  layer weights at the {name_position(position)}: {shown} "
            f"(scale {report.scale[position]:.3f})"
        )
    if report.perplexity is not None:
        before, after = report.perplexity["before"], report.perplexity["after"]
        print(f"  perplexity of the dev text: {before:.1f} before fine-tuning, {after:.1f} after")
    for part in report.scores:
        if not report.has_learned(part):
            constant = report.constant_scores[part]
            # By F1, the best constant prediction is to predict nothing, which scores 0.
            prediction = "always predicting the same label" if constant else "predicting nothing"
            print(f"  did not learn: {prediction} also scores {constant:.2f} on {part}")
