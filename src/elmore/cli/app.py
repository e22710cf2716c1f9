"""The `elmore` command: one file per command; a user's mistake is one sentence and status 2."""

import sys
from typing import Annotated

import typer

from elmore import __version__
from elmore.cli.compare import compare
from elmore.cli.convert import convert
from elmore.cli.display import printing_data_warnings
from elmore.cli.embed import embed
from elmore.cli.evaluate import evaluate
from elmore.cli.explore import explore
from elmore.cli.export import export
from elmore.cli.export_words import export_words
from elmore.cli.finetune import finetune
from elmore.cli.fit import fit
from elmore.cli.fit_projection import fit_projection
from elmore.cli.index import index
from elmore.cli.info import info
from elmore.cli.neighbors import neighbors
from elmore.cli.plot import plot
from elmore.cli.predict import predict
from elmore.cli.prepare import prepare
from elmore.cli.pretrain import pretrain
from elmore.cli.probe_senses import probe_senses_command
from elmore.cli.probe_tags import probe_tags_command
from elmore.cli.score import score
from elmore.cli.serve import serve
from elmore.errors import ElmoreError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="ELMo, and more: word vectors in context, from any published ELMo model or your own.",
)
app.command()(embed)
app.command()(fit_projection)
app.command()(convert)
app.command()(export)
app.command()(info)
app.command()(neighbors)
app.command()(index)
app.command()(explore)
app.command()(export_words)
app.command()(prepare)
app.command()(pretrain)
app.command()(plot)
app.command()(finetune)
app.command()(evaluate)
app.command()(score)
app.command()(fit)
app.command()(predict)
app.command()(compare)
app.command()(serve)
probe = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Measure what each layer of a model knows about tags or word senses.",
)
probe.command("tags")(probe_tags_command)
probe.command("senses")(probe_senses_command)
app.add_typer(probe, name="probe")


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(__version__)
        raise typer.Exit


@app.callback()
def about(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """Handle `elmore --version`."""


def main() -> None:
    """Run the command line."""
    try:
        with printing_data_warnings():
            app()
    except ElmoreError as error:
        print(f"elmore: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:  # a name too long, a folder that may not be searched, a full disk
        path = f"{error.filename}: " if error.filename else ""
        reason = error.strerror or str(error)
        print(f"elmore: {path}{reason}; check path, permissions and space", file=sys.stderr)
        sys.exit(2)
    except MemoryError:
        print(
            "elmore: out of memory; use smaller batches (a smaller "
            "--tokens-per-batch, or in training --set training.accumulation=4)",
            file=sys.stderr,
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
