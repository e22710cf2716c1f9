"""Options that several commands share."""

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from elmore.config import OTHER_SPELLINGS, WEIGHTS_IN_MEMORY, Precision, StatePolicy
from elmore.errors import ConfigError, DataError
from elmore.files import atomic
from elmore.text.files import TextForm, find_files, read_text
from elmore.text.language import Language
from elmore.text.line_sentences import NumberedSentence

if TYPE_CHECKING:
    from elmore.embed.embedder import Embedder
    from elmore.lm.language_model import LanguageModel
    from elmore.weights.elmo_model import ElmoModel


def make_out_option(help: str, *, check: Callable[[Any], Any] | None = None) -> Any:  # noqa: A002
    """Return the option --out, which is checked before any work is done."""
    return typer.Option("--out", "-o", callback=check or check_out, help=help)


def check_out(out: Path | None) -> Path | None:
    """Raise an error for a path that is probably mistyped."""
    if out is not None:
        atomic.check_out(out)
    return out


def check_out_or_url(out: str | None) -> str | None:
    """Check a path as `check_out` does; URLs are left to their file system."""
    if out is not None and "://" not in out:
        check_out(Path(out))
    return out


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


_TEXT = typer.Argument(
    help="Text file, possibly compressed (.gz, .xz, .bz2, .zst), or - for standard input."
)
Text = Annotated[str, _TEXT]
OptionalText = Annotated[str | None, _TEXT]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="Model folder, bilm-tf weights (.hdf5) or TensorFlow checkpoint, ELMoForManyLangs "
        "folder, archive of one of them (.zip, .tar.gz, .tar.bz2) or Hugging Face hub id. Default: "
        "the English model that comes with elmore.",
    ),
]
PredictingModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="Folder or Hugging Face hub id of a model with an LM head, or a TensorFlow checkpoint "
        "of bilm-tf. Default: the English model that comes with elmore.",
    ),
]
Options = Annotated[
    Path | None,
    typer.Option("--options", help="options.json of bilm-tf weights, if it is not next to them."),
]
TokenEmbeddings = Annotated[
    Path | None,
    typer.Option(help="bilm-tf file of token embeddings, used instead of the character CNN."),
]
Vocabulary = Annotated[
    Path | None, typer.Option(help="The vocabulary of --token-embeddings or of a checkpoint.")
]
CheckpointVocabulary = Annotated[
    Path | None,
    typer.Option("--vocabulary", help="The words that a TensorFlow checkpoint predicts."),
]
Softmax = Annotated[
    Path | None,
    typer.Option(
        "--softmax",
        help="TensorFlow checkpoint with the LM head of HDF5 weights, such as model.ckpt-935588.",
    ),
]
Tokenized = Annotated[
    bool,
    typer.Option(
        "--tokenized",
        help="One tokenized sentence per line, split at tabs or, in lines without tabs, at spaces. "
        "Short for --form tokenized.",
    ),
]
Form = Annotated[
    TextForm | None,
    typer.Option(
        help="Format of the text. raw: plain text. wrapped: plain text with wrapped "
        "lines. tokenized: one tokenized sentence per line. lines: one sentence "
        "per line, not tokenized. fasta: proteins, a residue is a token (fasta-exact "
        "keeps U, Z, O and B, which otherwise become X). Default: by the file's "
        "ending (.conllu, .fasta, .fa, .faa), raw for others."
    ),
]
Heldout = Annotated[float, typer.Option(help="Share of the documents to hold out.")]
HeldoutText = Annotated[
    list[str] | None,
    typer.Option(help="Hold out this file or pattern instead. Can be repeated."),
]
DocumentSentences = Annotated[
    int | None, typer.Option(min=1, help="Also end a document after this many sentences.")
]
StaticVectors = Annotated[
    Path | None,
    typer.Option(
        help="Static word vectors to compare with: text like GloVe's, or .npz with "
        "arrays words and vectors."
    ),
]
LanguageOption = Annotated[
    Language,
    typer.Option(
        help="How plain text is split into tokens. en: any language with spaces between words. zh: "
        "Chinese words. zh-chars: Chinese characters."
    ),
]
State = Annotated[
    StatePolicy,
    typer.Option(
        help="The LSTM state that a sentence starts from. reset: always the same, so "
        "a vector depends only on its sentence. document: carries over within a "
        "document. stream: always carries over, as in bilm-tf and AllenNLP."
    ),
]
Layers = Annotated[
    str,
    typer.Option(
        "--layers",
        "-l",
        help="Layers to return: average, sum, top, all, a number (0 is the token layer), "
        "or several: 0,2.",
    ),
]
SingleVector = Annotated[
    str,
    typer.Option(
        "--layers",
        "-l",
        help="Layer to compare: average, sum, top or a number (0 is the token layer).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Device = Annotated[str, typer.Option(help="Device to compute on: cpu, cuda, mps, ...")]
PrecisionOption = Annotated[
    str,
    make_precision_option(
        "--precision",
        allowed=WEIGHTS_IN_MEMORY,
        help="Format of the weights in memory. f32 is exact. bf16 and int8 take a "
        "half and a quarter of the memory and are faster on most CPUs; vectors "
        "are about 0.4 % and 2 % off.",
    ),
]
TokensPerBatch = Annotated[
    int, typer.Option(min=1, help="Tokens per batch. More is faster and needs more memory.")
]
MaxSentenceTokens = Annotated[
    int, typer.Option(min=1, help="Longer sentences are an error; they are never truncated.")
]

Restart = Annotated[
    bool,
    typer.Option("--restart", help="Start over: first delete the results of an earlier run."),
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a setting: --set training.seed=2. Can be repeated."),
]


def is_given(context: typer.Context, name: str) -> bool:
    """Return whether the user gave this option, and not its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def choose_form(form: TextForm | None, *, tokenized: bool) -> TextForm | None:
    """Return the form that --form and --tokenized ask for."""
    if tokenized and form not in (None, TextForm.TOKENIZED):
        raise typer.BadParameter(f"--tokenized contradicts --form {form}; give one of them")
    return TextForm.TOKENIZED if tokenized else form


def check_layers(
    layers: str,
    *,
    num_layers: int,
    names: Sequence[str] = ("average", "sum", "top", "all"),
    may_be_several: bool = True,
) -> None:
    """Raise an error for a value of --layers that the command or the model does not have."""
    numbers = layers.split(",") if may_be_several else [layers]
    are_known = all(number.strip().isdecimal() and int(number) < num_layers for number in numbers)
    if layers in names or are_known:
        return
    several = ", or several: 0,2" if may_be_several else ""
    raise ConfigError(
        f"--layers is {layers!r:.60}; give {', '.join(names)}"
        f"{', ' if several else ' or '}a layer number from 0 to {num_layers - 1}{several}"
    )


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
    """Print what had to be assumed about a model."""
    if model.config.about.notes:
        print(f"note: {model.config.about.notes}", file=sys.stderr)


def load_embedder(model: str | None, **settings: Any) -> "Embedder":
    """Load a model; print a note if it is untrained."""
    # torch takes seconds to import, and `elmore --help` should not.
    from elmore.embed.embedder import load  # noqa: PLC0415

    embedder = load(model, **settings)
    print_notes(embedder.model)
    if not embedder.model.config.about.is_trained:
        print(
            "note: this model is untrained (random weights), so its vectors have no meaning",
            file=sys.stderr,
        )
    return embedder


def load_language_model(model: str | None, device: str, **files: Path | None) -> "LanguageModel":
    """Load a model that predicts words."""
    from elmore.jobs.device import read_device  # noqa: PLC0415  brings torch
    from elmore.lm.language_model import load_language_model as load  # noqa: PLC0415

    checked_device = read_device(device)
    loaded = load(model, **files).to(checked_device)
    print_notes(loaded.elmo)
    return loaded
