"""The `elmore` command: one file per command; a user's mistake is one sentence and status 2."""

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
import typer.core

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

# What `elmore --help` prints: the sections, and one line per command.
SECTIONS: dict[str, dict[str, tuple[Callable[..., None] | None, str]]] = {
    "Vectors": {
        "embed": (embed, "Compute a contextual vector for every token."),
        "index": (index, "Index every use of every word in a text."),
        "neighbors": (neighbors, "Find similar uses of a word."),
        "explore": (explore, "Open a page with maps of the uses of words."),
        "serve": (serve, "Serve vectors, scores and gap filling over HTTP."),
        "export-words": (export_words, "Write static word vectors in word2vec's formats."),
        "fit-projection": (fit_projection, "Fit a PCA that embed --dim projects to."),
    },
    "Language models": {
        "prepare": (prepare, "Prepare text for pretraining."),
        "pretrain": (pretrain, "Train a biLM on prepared text."),
        "finetune": (finetune, "Fine-tune a model on the text of a domain."),
        "plot": (plot, "Plot loss and perplexity of training runs."),
        "evaluate": (evaluate, "Measure the perplexity of a text."),
        "score": (score, "Compute log-probabilities of tokens, or fill a gap."),
    },
    "Tasks": {
        "fit": (fit, "Train a network for a task, with ELMo vectors."),
        "predict": (predict, "Predict with a trained task."),
        "compare": (compare, "Train a task with and without ELMo, and compare."),
        "probe": (None, "Measure what each layer knows about tags or senses."),
    },
    "Model files": {
        "info": (info, "Show a model's size, layers and training data."),
        "convert": (convert, "Convert a model to another format."),
        "export": (export, "Export a model to ONNX."),
    },
}


class SectionedGroup(typer.core.TyperGroup):
    """Lists the commands in sections."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  click calls it
        """Write one section per kind of work."""
        width = max(len(name) for commands in SECTIONS.values() for name in commands)
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                rows = [(name.ljust(width), text) for name, (_, text) in commands.items()]
                formatter.write_dl(rows)


app = typer.Typer(
    cls=SectionedGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="ELMo, and more: word vectors in context, from any published ELMo model or your own.",
    epilog="Details and examples: elmore COMMAND --help",
)
probe = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Measure what each layer of a model knows about tags or word senses.",
)
probe.command("tags", short_help="Predict tags with a linear classifier of each layer.")(
    probe_tags_command
)
probe.command("senses", short_help="Predict word senses by the nearest mean vector.")(
    probe_senses_command
)
for commands in SECTIONS.values():
    for name, (command, _) in commands.items():
        if command is not None:
            app.command(name)(command)
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
