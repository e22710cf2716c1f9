"""`elmore pretrain`: a prepared corpus in, a model out."""

import json
import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmore.cli import options
from elmore.cli.stops import how_to_go_on, telling_of_stops
from elmore.cli.training_display import TrainingDisplay, format_seconds
from elmore.lm.settings import PretrainSettings, load_settings
from elmore.settings import find_config
from elmore.wording import count

if TYPE_CHECKING:
    from elmore.lm.finish import RunReport

Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a setting: --set training.rows=64. May be repeated."),
]
Restart = Annotated[
    bool, typer.Option("--restart", help="Begin anew, and remove what an earlier run left.")
]


def pretrain(
    config: Annotated[
        str,
        typer.Argument(
            help="A file of settings (TOML), or the name of one that comes with elmore: tiny, "
            "small, medium, original, many-languages, chinese."
        ),
    ],
    corpus: Annotated[
        Path, typer.Option("--corpus", "-c", help="Corpus made by `elmore prepare`.")
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", callback=options.check_out, help="Folder of the run."),
    ],
    changes: Changes = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            "--weight",
            metavar="SOURCE=N",
            help="Read a source of the corpus N times per epoch: --weight news=2. SOURCE is a file "
            "name without its ending, or a pattern such as 'news_*'. May be repeated.",
        ),
    ] = None,
    restart: Restart = False,
    device: options.Device = "cpu",
    as_json: options.Json = False,
) -> None:
    """Train a biLM on a prepared corpus.

    The run folder gets checkpoints, metrics.jsonl and, at the end, model/. Stopped in whatever way,
    the same command goes on where it was.

    For example:

        elmore prepare books/*.txt --out corpus/

        elmore pretrain small --corpus corpus/ --out run/

        elmore pretrain my.toml --corpus corpus/ --out run/ --set training.rows=64

        elmore embed sentences.txt --model run/model --out vectors.h5

        elmore pretrain small --corpus corpus/ --out run/ --weight news=2 --weight books=0

        torchrun --nproc-per-node 2 -m elmore pretrain small -c corpus/ -o run/
    """
    settings = load_settings(find_config(config), changes or [])
    weights = {**settings.training.weights, **_read_weights(weight or [])}
    settings = replace(settings, training=replace(settings.training, weights=weights))
    run_training(settings, corpus, out, restart=restart, device=device, as_json=as_json)


def _read_weights(options: list[str]) -> dict[str, int]:
    """Read every SOURCE=N."""
    weights = {}
    for option in options:
        source, equals, number = option.rpartition("=")
        if not equals or not source or not (number.isascii() and number.isdecimal()):
            raise typer.BadParameter(
                f"--weight {option!r:.80} is not of the form SOURCE=N with a whole number"
            )
        weights[source] = int(number)
    return weights


def run_training(
    settings: PretrainSettings,
    corpus: Path,
    out: Path,
    *,
    restart: bool,
    device: str,
    as_json: bool,
) -> None:
    """Train, show how it goes, and tell what came of it."""
    from elmore.lm.pretrain import pretrain_model  # noqa: PLC0415  brings torch

    display = TrainingDisplay()
    with telling_of_stops(otherwise=how_to_go_on(restart=restart)), shown_once(display):
        report = pretrain_model(
            settings, corpus, out, observer=display, restart=restart, device=device
        )
    if report is not None:
        print_report(report, as_json=as_json)


def shown_once(display: TrainingDisplay) -> AbstractContextManager[None]:
    """Show the display, of several processes by the first only."""
    return display.shown() if os.environ.get("RANK", "0") == "0" else nullcontext()


def print_report(report: "RunReport", *, as_json: bool) -> None:
    """Tell what came of a run."""
    if as_json:
        print(json.dumps(report.to_json()))
        return
    print(
        f"{report.folder / 'model'}: {count(report.step, 'step')}, "
        f"{count(report.tokens, 'token')} in "
        f"{format_seconds(report.seconds)} ({report.reason})"
    )
    if report.heldout is None:
        print("  no text was held out, so nothing is known of its perplexity")
    else:
        print(f"  on {report.heldout.num_predictions:,} held-out tokens and ends of sentences:")
    rows = [("held out, state carried", report.heldout)]
    if report.starts is not None:
        rows += [
            ("every sentence from zeros", report.starts.zeros),
            (
                f"every sentence from the rest state ({report.starts.strength:.0%} of the mean)",
                report.starts.rest,
            ),
        ]
    rows += [(f"held out, {name}", totals) for name, totals in report.sources.items()]
    for name, totals in rows:
        if totals is not None:
            print(
                f"  perplexity, {name}: {totals.perplexity:.2f} "
                f"(forward {totals.forward_perplexity:.2f}, "
                f"backward {totals.backward_perplexity:.2f})"
            )
