"""`elmore index`: all uses of all words in some text, with their vectors."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from elmore.cli import options
from elmore.cli.index_building import build_shown
from elmore.text.language import Language
from elmore.wording import count


def index(
    text: Annotated[
        list[str],
        typer.Argument(
            help="Text files, possibly compressed (.gz, .xz, .bz2, .zst), folders of them, or "
            "patterns such as 'texts/*.txt'."
        ),
    ],
    out: Annotated[
        Path, options.make_out_option("Folder of the index; files are added to an existing one.")
    ],
    model: options.Model = None,
    layers: Annotated[
        str,
        typer.Option(
            "--layers",
            "-l",
            help="Layers to store: all, top, a number (0 is the token layer), or several: 0,2.",
        ),
    ] = "all",
    words: Annotated[
        str,
        typer.Option(
            help="Index only the uses of these words, ignoring case, and their sentences: "
            "bank,spring. Default: all words."
        ),
    ] = "",
    graph: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Also build a graph for approximate search in this layer; for many millions of "
            "tokens. Needs the extra search.",
        ),
    ] = None,
    tokenized: options.Tokenized = False,
    form: options.Form = None,
    language: options.LanguageOption = Language.EN,
    restart: options.Restart = False,
    options_path: options.Options = None,
    token_embeddings: options.TokenEmbeddings = None,
    vocabulary: options.Vocabulary = None,
    device: options.Device = "cpu",
    precision: options.PrecisionOption = "f32",
    tokens_per_batch: options.TokensPerBatch = 2048,
    max_sentence_tokens: options.MaxSentenceTokens = 10_000,
    as_json: options.Json = False,
) -> None:
    """Index every use of every word, to find uses and similar uses quickly.

    Files that the index already has are skipped. To resume after an interruption, rerun the
    command. Parts of speech are kept from CoNLL-U files.

    For example:

        elmore index book.txt --out index/

        elmore index more.txt --out index/

        elmore index corpus.txt.gz --words bank,banks --out banks/

        elmore neighbors bank index/
    """
    chosen_form = options.choose_form(form, tokenized=tokenized)
    from elmore.explore.index_sources import find_text_files  # noqa: PLC0415  brings numpy
    from elmore.explore.use_index import open_index  # noqa: PLC0415

    paths = find_text_files(text)  # a missing file is noticed before a model is loaded
    embedder = options.load_embedder(
        model,
        options=options_path,
        token_embeddings=token_embeddings,
        vocabulary=vocabulary,
        language=language,
        device=device,
        precision=precision,
        tokens_per_batch=tokens_per_batch,
        max_sentence_tokens=max_sentence_tokens,
    )
    options.check_layers(layers, num_layers=embedder.num_layers, names=("all", "top"))
    report = build_shown(
        paths,
        out,
        embedder=embedder,
        layers=layers,
        words=[word.strip() for word in words.split(",") if word.strip()],
        form=chosen_form,
        restart=restart,
    )
    if graph is not None:
        open_index(out).build_graph(graph)
    if as_json:
        print(json.dumps(asdict(report)))
        return
    added = f"added {count(report.num_added_tokens, 'token')}; " if report.num_added_sources else ""
    print(
        f"{out}: {added}{count(report.num_tokens, 'token')} of {count(report.num_words, 'word')} "
        f"in {count(report.num_sentences, 'sentence')}, {report.num_bytes / 1e6:,.1f} MB",
        file=sys.stderr,
    )
