"""`elmore prepare`: prepare text for training; with --verify, check a prepared corpus."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmore.cli import options
from elmore.cli.display import report_interrupt, show_prepare, show_status
from elmore.cli.tables import print_table
from elmore.corpus.settings import BadBytesPolicy, PrepareSettings
from elmore.lm.settings import load_settings
from elmore.settings import find_config
from elmore.text.language import Language
from elmore.wording import count

if TYPE_CHECKING:
    from elmore.corpus.corpus import Corpus

_DEFAULTS = PrepareSettings()
# Of the configurations, the one with the smallest steps; a shorter text suits none of them.
SMALLEST = "tiny"


def prepare(
    context: typer.Context,
    out: Annotated[
        Path,
        options.make_out_option("Folder for the corpus."),
    ],
    text: Annotated[
        list[str] | None,
        typer.Argument(
            help="Text files, possibly compressed (.gz, .xz, .bz2, .zst), patterns such as "
            "'texts/*.gz', or - for standard input.",
            show_default=False,
        ),
    ] = None,
    tokenized: options.Tokenized = False,
    form: options.Form = None,
    language: options.LanguageOption = Language.EN,
    max_words: Annotated[
        int | None,
        typer.Option(
            min=0, help=f"Maximum size of the vocabulary. Default: {_DEFAULTS.max_words:,}."
        ),
    ] = None,
    min_count: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Keep only words that occur at least this often in the training text. "
            f"Default: {_DEFAULTS.min_count}.",
        ),
    ] = None,
    vocabulary: Annotated[
        Path | None,
        typer.Option(help="Use this list of words, one per line, with `<S>`, `</S>` and `<UNK>`."),
    ] = None,
    extend: Annotated[
        bool,
        typer.Option(
            "--extend", help="Append new words of the text to --vocabulary, for fine-tuning."
        ),
    ] = False,
    heldout: options.Heldout = _DEFAULTS.heldout,
    heldout_text: options.HeldoutText = None,
    document_sentences: options.DocumentSentences = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed for choosing the held-out documents.")
    ] = _DEFAULTS.seed,
    bad_bytes: Annotated[
        BadBytesPolicy,
        typer.Option(
            help="How to handle bytes that are not UTF-8: refuse the text, or replace "
            "them with U+FFFD."
        ),
    ] = _DEFAULTS.bad_bytes,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of processes. Default: one per core.")
    ] = None,
    restart: options.Restart = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Only check all files of the corpus in --out against their checksums.",
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Split text into tokens, choose a vocabulary, and hold out some documents.

    Blank lines end documents. Memory use depends on the vocabulary, not on the size of the text. To
    resume after an interruption, rerun the command.

    For example:

        elmore prepare 'books/*.txt.gz' --out corpus/

        elmore prepare news.txt --tokenized --vocabulary vocab.txt --out corpus/

        zcat dump.gz | elmore prepare - --document-sentences 50 --out corpus/

        elmore prepare --verify --out corpus/
    """
    if verify:
        _refuse_other_options(context)
        _verify(out, as_json=as_json)
        return
    if not text:
        raise typer.BadParameter(
            "there is no text to prepare; give files, or - for standard input (or "
            "--verify to check a prepared corpus)"
        )
    form = options.choose_form(form, tokenized=tokenized)
    if vocabulary is not None and not extend and (max_words, min_count) != (None, None):
        raise typer.BadParameter(
            "--vocabulary is used as is; leave out --max-words and --min-count, or add --extend"
        )
    settings = PrepareSettings(
        form=form,
        language=language,
        max_words=_DEFAULTS.max_words if max_words is None else max_words,
        min_count=_DEFAULTS.min_count if min_count is None else min_count,
        vocabulary=vocabulary,
        extends=extend,
        heldout=heldout,
        document_sentences=document_sentences,
        seed=seed,
        bad_bytes=bad_bytes,
    )
    sources = options.find_sources(text)
    heldout_sources = options.find_sources(heldout_text or [])
    from elmore.corpus.prepare import prepare_corpus  # noqa: PLC0415  brings numpy

    with report_interrupt(restart=restart), show_prepare() as on_progress:
        corpus = prepare_corpus(
            sources,
            out,
            settings=settings,
            heldout_sources=heldout_sources,
            num_processes=processes,
            restart=restart,
            on_progress=on_progress,
        )
    _report(corpus, as_json=as_json)


def _refuse_other_options(context: typer.Context) -> None:
    """Raise an error for options that --verify would ignore."""
    allowed = ("out", "verify", "as_json")
    others = [
        "TEXT" if parameter.name == "text" else parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in allowed and options.is_given(context, str(parameter.name))
    ]
    if others:
        raise typer.BadParameter(
            f"--verify only checks the corpus in --out; leave out {', '.join(others)}"
        )


def _verify(folder: Path, *, as_json: bool) -> None:
    """Check a whole corpus, and print the result; damage is an error."""
    from elmore.corpus.corpus import check_corpus  # noqa: PLC0415  brings numpy

    with show_status("checking") as show:
        corpus = check_corpus(
            folder, on_shard=lambda number, of: show(f"checking shard {number + 1:,} of {of:,}")
        )
    about = corpus.about
    num_shards = len(about["shards"])
    num_bytes = sum(entry["bytes"] for entry in about["files"].values())
    num_bytes += sum(entry["num_bytes"] for entry in about["shards"])
    if as_json:
        facts = {"folder": str(folder), "num_shards": num_shards, "num_bytes": num_bytes}
        print(json.dumps({**facts, "fingerprint": corpus.fingerprint}))
    else:
        print(
            f"{folder}: {count(num_shards, 'shard')} and all other files match their checksums "
            f"({count(num_bytes, 'byte')})"
        )


def _report(corpus: "Corpus", *, as_json: bool) -> None:
    """Print a summary of the corpus."""
    from elmore.lm.enough_text import find_overlap, find_shortage  # noqa: PLC0415  brings numpy

    about = corpus.about
    training = load_settings(find_config(SMALLEST)).training
    shortage = find_shortage(corpus, window=training.window) or find_overlap(
        corpus, training, remedy="prepare more text"
    )
    notes = [*about["notes"], *([] if shortage is None else [shortage])]
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if as_json:
        names = ("fingerprint", "vocabulary_size", "parts", "bad_bytes")
        facts = {name: about[name] for name in names}
        report = {"folder": str(corpus.folder), **facts, "notes": notes}
        print(json.dumps(report, ensure_ascii=False))
        return
    rows = []
    for name, title in (("train", "train"), ("heldout", "held out")):
        part = about["parts"][name]
        numbers = [f"{part[count]:,}" for count in ("documents", "sentences", "tokens")]
        rows.append((title, *numbers, f"{part['outside_share']:.2%}"))
    headings = ("", "documents", "sentences", "tokens", "outside the vocabulary")
    print_table(headings, rows, has_borders=False)
    print(f"vocabulary: {about['vocabulary_size']:,} words, in {corpus.folder}")
