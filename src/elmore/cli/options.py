"""Options that several verbs share, worded once."""

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from elmore.config import OTHER_SPELLINGS, WEIGHTS_IN_MEMORY, Precision, StatePolicy
from elmore.errors import DataError
from elmore.files import atomic
from elmore.text.files import TextForm, find_files, read_text
from elmore.text.language import Language
from elmore.text.line_sentences import NumberedSentence

if TYPE_CHECKING:
    from elmore.embed.embedder import Embedder
    from elmore.weights.elmo_model import ElmoModel


def make_precision_option(*names: str, allowed: Sequence[Precision], help: str) -> Any:  # noqa: A002
    """Return an option for a number format; earlier spellings still work."""

    def parse(value: str) -> str:
        now = OTHER_SPELLINGS.get(value, value)
        if now not in allowed:
            raise typer.BadParameter(f"{value!r:.60} is not one of {', '.join(allowed)}")
        if now != value:
            print(f"note: {value} is now spelled {now}", file=sys.stderr)
        return str(now)

    return typer.Option(*names, parser=parse, metavar=f"[{'|'.join(allowed)}]", help=help)


Text = Annotated[
    str, typer.Argument(help="Text file (.gz, .xz, .bz2, .zst too), or - for standard input.")
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="Model folder, bilm-tf weights (.hdf5), ELMoForManyLangs folder or hub id. "
        "Without it: the model that comes with elmore.",
    ),
]
PredictingModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="Model folder or hub id, with a softmax. Without it: the model that comes with "
        "elmore.",
    ),
]
Options = Annotated[
    Path | None,
    typer.Option("--options", help="options.json of bilm-tf weights, if it is not beside them."),
]
TokenEmbeddings = Annotated[
    Path | None,
    typer.Option(help="bilm-tf token-embedding file, for tokens looked up instead of spelled."),
]
Vocabulary = Annotated[
    Path | None, typer.Option(help="The vocabulary that goes with --token-embeddings.")
]
Tokenized = Annotated[
    bool,
    typer.Option(
        "--tokenized",
        help="One sentence a line, tokens separated by tabs if it has any, else by spaces. "
        "Short for --form tokenized.",
    ),
]
Form = Annotated[
    TextForm | None,
    typer.Option(
        help="How the text holds its sentences. Without it: conllu for .conllu files, else raw."
    ),
]
LanguageOption = Annotated[
    Language,
    typer.Option(
        help="How raw text is split: en for words with spaces between them; zh for Chinese words, "
        "zh-chars for Chinese characters."
    ),
]
State = Annotated[
    StatePolicy,
    typer.Option(
        help="reset: a vector depends on its sentence alone. document: state is carried within a "
        "document. stream: always carried, as bilm-tf and AllenNLP do."
    ),
]
Layers = Annotated[
    str,
    typer.Option(
        "--layers", "-l", help="all, average, top, a layer number from 0, or several: 0,2."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for a program to read.")]
Device = Annotated[str, typer.Option(help="Where to compute: cpu, cuda, mps, ...")]
PrecisionOption = Annotated[
    str,
    make_precision_option(
        "--precision",
        allowed=WEIGHTS_IN_MEMORY,
        help="f32: exact. bf16, int8: half and a quarter of the memory, faster on most CPUs, "
        "vectors about 0.4 % and 2 % off.",
    ),
]
TokensPerBatch = Annotated[
    int, typer.Option(min=1, help="Tokens computed at once: more is faster, and needs more memory.")
]
MaxSentenceTokens = Annotated[
    int, typer.Option(min=1, help="Refuse a sentence longer than this; nothing is ever cut.")
]

Restart = Annotated[
    bool, typer.Option("--restart", help="Start over: delete what an earlier run left in --out.")
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a setting: --set training.seed=2. May be repeated."),
]


def check_out(out: Path | None) -> Path | None:
    """Refuse a path that is probably mistyped, before any work is done."""
    if out is not None:
        atomic.check_out(out)
    return out


def choose_form(form: TextForm | None, *, tokenized: bool) -> TextForm | None:
    """Return the form that --form and --tokenized ask for."""
    if tokenized and form not in (None, TextForm.TOKENIZED):
        raise typer.BadParameter(f"--tokenized contradicts --form {form}; give one of them")
    return TextForm.TOKENIZED if tokenized else form


def find_sources(patterns: list[str]) -> list[Path | BinaryIO]:
    """Return the files of paths and patterns, and standard input for a dash."""
    sources: list[Path | BinaryIO] = []
    for pattern in patterns:
        sources += [_open_stdin()] if pattern == "-" else find_files([pattern])
    return sources


def _open_stdin() -> BinaryIO:
    if sys.stdin is None:
        raise DataError("standard input is closed; pipe text into it, or name a file")
    return sys.stdin.buffer


def open_text(
    text: str,
    *,
    tokenized: bool,
    form: TextForm | None,
    language: Language,
    state: StatePolicy = StatePolicy.RESET,
    on_bytes: Callable[[int], None] | None = None,
) -> Iterator[NumberedSentence]:
    """Return the sentences of a file or of standard input, with their lines."""
    sentences = read_text(
        _open_stdin() if text == "-" else Path(text),
        form=choose_form(form, tokenized=tokenized),
        language=language,
        keeps_document_ends=state is StatePolicy.DOCUMENT,
        on_bytes=on_bytes,
    )
    # Read the first sentence now, so that a missing file is noticed before a model is loaded.
    return chain(list(islice(sentences, 1)), sentences)


def open_sentences(
    text: str,
    *,
    tokenized: bool,
    form: TextForm | None,
    language: Language,
    state: StatePolicy = StatePolicy.RESET,
) -> Iterator[list[str]]:
    """Return the tokens of each sentence of a file or of standard input."""
    sentences = open_text(text, tokenized=tokenized, form=form, language=language, state=state)
    return (sentence.tokens for sentence in sentences)


def print_notes(model: "ElmoModel") -> None:
    """Say what had to be assumed about a model."""
    if model.config.about.notes:
        print(f"note: {model.config.about.notes}", file=sys.stderr)


def load_embedder(model: str | None, **settings: Any) -> "Embedder":
    """Load a model; say so if it has learned nothing."""
    # torch takes seconds to import, and `elmore --help` should not.
    from elmore.embed.embedder import load  # noqa: PLC0415

    embedder = load(model, **settings)
    print_notes(embedder.model)
    if not embedder.model.config.about.is_trained:
        print(
            "note: this model is untrained (random weights); its vectors show how elmore works, "
            "and carry no meaning",
            file=sys.stderr,
        )
    return embedder
