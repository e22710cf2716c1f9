"""`elmore fit`: a task's data in, a trained task network out, with ELMo vectors or without."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmore.cli import options
from elmore.cli.fit_display import FitDisplay
from elmore.cli.pretrain import Restart
from elmore.cli.stops import how_to_go_on, telling_of_stops
from elmore.errors import ConfigError
from elmore.wording import count

if TYPE_CHECKING:
    from elmore.tasks.data.parts import Parts
    from elmore.tasks.fit.fit import FitReport
    from elmore.tasks.fit.settings import FitSettings

TaskName = Annotated[
    str,
    typer.Argument(
        help="entities (ner), tags (pos), sentiment, entailment, roles (srl), coreference, "
        "questions (qa); texts or pairs for your own."
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(help="Folder with files for train, dev and maybe test, told by their names."),
]
Train = Annotated[Path | None, typer.Option(help="Training data: a file, or a folder of files.")]
Dev = Annotated[Path | None, typer.Option(help="Data by which weights are chosen.")]
Test = Annotated[Path | None, typer.Option(help="Data to be scored on at the end.")]
Elmo = Annotated[
    str | None,
    typer.Option(
        help="The biLM: model folder, bilm-tf weights, ELMoForManyLangs folder or hub id. "
        "Without it: the model that comes with elmore."
    ),
]
Words = Annotated[
    Path | None,
    typer.Option(
        help="Word vectors: GloVe's text, or .npz with the arrays words and vectors. Without "
        "them, they are learned. Short for --set words.file=FILE."
    ),
]
Config = Annotated[Path | None, typer.Option(help="Settings as TOML. Without it: the task's own.")]
Accept = Annotated[
    bool,
    typer.Option(
        "--accept",
        help="Train even if the data looks wrong: typos among labels, swapped columns, lost blank "
        "lines, another script than the biLM's.",
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a setting, such as training.max_epochs=5; repeatable."),
]


def fit(
    task: TaskName,
    data: Data = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            callback=options.check_out,
            help="Folder of the trained task. Without it: the task's name.",
        ),
    ] = None,
    train: Train = None,
    dev: Dev = None,
    test: Test = None,
    elmo: Elmo = None,
    without_elmo: Annotated[
        bool, typer.Option("--without-elmo", help="Train the network without ELMo vectors.")
    ] = False,
    words: Words = None,
    config: Config = None,
    changes: Changes = None,
    restart: Restart = False,
    accept: Accept = False,
    device: options.Device = "cpu",
    as_json: options.Json = False,
) -> None:
    """Train a network for a task, with ELMo vectors at its input, its output, or both.

    What was read is shown first, and data that looks wrong stops the command (see --accept). The
    biLM is frozen, and its layers are computed once and kept on disk; --set elmo.training=task
    trains it too. To resume a run that was stopped, rerun the command.

    For example:

        elmore fit ner --data conll2003/ --words glove.6B.50d.txt

        elmore fit texts --train reviews.tsv --dev dev.tsv --set elmo.where=both

        elmore predict entities/ letter.txt
    """
    if without_elmo and elmo is not None:
        raise ConfigError("--without-elmo contradicts --elmo; give one of them")
    if without_elmo and any(change.strip().startswith("elmo.") for change in changes or []):
        raise ConfigError("--without-elmo contradicts --set elmo...; give one of them")
    settings, parts = read_task(
        task,
        data=data,
        train=train,
        dev=dev,
        test=test,
        words=words,
        config=config,
        changes=[*(changes or []), *(["elmo.where=none"] if without_elmo else [])],
    )
    from elmore.tasks.fit.elmo import ElmoChoice  # noqa: PLC0415  brings torch
    from elmore.tasks.fit.fit import fit_task  # noqa: PLC0415
    from elmore.tasks.fit.model import make_task  # noqa: PLC0415
    from elmore.tasks.fit.plan import REPORT  # noqa: PLC0415

    folder = out or Path(settings.kind)
    display = FitDisplay(score_name=make_task(settings).main_score)
    was_done = not restart and (folder / REPORT).is_file()
    with telling_of_stops(otherwise=how_to_go_on(restart=restart)), display.shown():
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
        _print_report(report, folder, note="; trained before" if was_done else "")


def read_task(
    task: str,
    *,
    data: Path | None,
    train: Path | None,
    dev: Path | None,
    test: Path | None,
    words: Path | None,
    config: Path | None,
    changes: list[str],
) -> "tuple[FitSettings, Parts]":
    """Return the settings and files that options name."""
    from elmore.tasks.data.parts import find_parts  # noqa: PLC0415
    from elmore.tasks.fit.settings import load_settings  # noqa: PLC0415  brings torch

    if data is None and (train is None or dev is None):
        missing = "--train" if dev else "--dev" if train else "data"
        raise ConfigError(f"{missing} is missing; give a folder (--data), or --train and --dev")
    if words is not None:
        changes = [*changes, f"words.file={json.dumps(str(words))}"]
    settings = load_settings(task, config=config, changes=changes)
    return settings, find_parts(data, train=train, dev=dev, test=test)


def _print_report(report: "FitReport", folder: Path, *, note: str) -> None:
    print(f"{folder}: {report.kind}, best epoch {report.best_epoch} of {len(report.curve)}{note}")
    for part, scores in report.scores.items():
        shown = ", ".join(f"{name} {score:.2f}" for name, score in scores.items())
        print(f"  {part} ({count(report.num_examples[part], 'example')}): {shown}")
    for place, shares in report.layer_shares.items():
        shown = ", ".join(f"{share:.3f}" for share in shares)
        print(f"  layers {place}: {shown}, times {report.scale[place]:.3f}")
    if report.perplexity is not None:
        before, after = report.perplexity["before"], report.perplexity["after"]
        print(f"  perplexity of the dev text: {before:.1f} before fine-tuning, {after:.1f} after")
    for part in report.scores:
        if not report.has_learned(part):
            constant = f"{report.main_score} {report.constant_scores[part]:.2f}"
            print(f"  nothing learned: on {part}, one prediction for everything has {constant}")
