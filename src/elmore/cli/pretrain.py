"""`elmore pretrain`: train a model on a prepared corpus."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from elmore.cli import options
from elmore.cli.display import report_interrupt
from elmore.cli.training_display import TrainingDisplay, print_run_report
from elmore.lm.settings import load_settings
from elmore.settings import find_config


def pretrain(
    config: Annotated[
        str,
        typer.Argument(
            metavar="SETTINGS",
            help="A TOML file, or the name of one that comes with elmore: tiny, small, medium, "
            "original, many-languages, chinese.",
        ),
    ],
    corpus: Annotated[
        Path, typer.Option("--corpus", "-c", help="Corpus made by `elmore prepare`.")
    ],
    out: Annotated[
        Path,
        options.make_out_option("Folder for the run."),
    ],
    changes: options.Changes = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            "--weight",
            metavar="SOURCE=N",
            help="Read a source of the corpus N times per epoch: --weight news=2. SOURCE is a file "
            "name without its suffix, or a pattern such as 'news_*'. Can be repeated.",
        ),
    ] = None,
    start_from: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Start from the weights of this model, in any format that elmore loads, instead "
            "of random ones. SETTINGS must have its architecture, or no [model] section.",
        ),
    ] = None,
    restart: options.Restart = False,
    device: options.Device = "cpu",
    as_json: options.Json = False,
) -> None:
    """Train a biLM on a prepared corpus.

    The folder gets checkpoints, metrics.jsonl and, at the end, the model in model/. To resume after
    an interruption, rerun the command.

    For example:

        elmore prepare books/*.txt --out corpus/

        elmore pretrain small --corpus corpus/ --out run/

        elmore pretrain my.toml --corpus corpus/ --out run/ --set training.rows=64

        elmore embed sentences.txt --model run/model --out vectors.h5

        elmore pretrain small --corpus corpus/ --out run/ --weight news=2 --weight books=0

        elmore pretrain training.toml --corpus corpus/ --out run/ --start-from 210.zip

        torchrun --nproc-per-node 2 -m elmore pretrain small -c corpus/ -o run/
    """
    settings = load_settings(find_config(config), changes or [], needs_model=start_from is None)
    weights = {**settings.training.weights, **_read_weights(weight or [])}
    settings = replace(settings, training=replace(settings.training, weights=weights))
    from elmore.lm.pretrain import pretrain_model  # noqa: PLC0415  brings torch

    display = TrainingDisplay()
    with report_interrupt(restart=restart), display.shown():
        report = pretrain_model(
            settings,
            corpus,
            out,
            observer=display,
            restart=restart,
            device=device,
            start_from=start_from,
        )
    if report is not None:
        print_run_report(report, as_json=as_json)


def _read_weights(options: list[str]) -> dict[str, int]:
    """Parse options of the form SOURCE=N."""
    weights = {}
    for option in options:
        source, equals, number = option.rpartition("=")
        if not equals or not source or not (number.isascii() and number.isdecimal()):
            raise typer.BadParameter(
                f"--weight {option!r:.80} is not of the form SOURCE=N with a whole number"
            )
        weights[source] = int(number)
    return weights
