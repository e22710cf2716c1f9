"""`elmore embed`: sentences in, a vector file out."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elmore.cli import options
from elmore.cli.display import EmbedProgress, report_interrupt
from elmore.config import VECTORS, StatePolicy
from elmore.text.language import Language
from elmore.text.line_sentences import NumberedSentence

if TYPE_CHECKING:
    from elmore.embed.embedder import Embedder


def embed(
    text: options.Text,
    model: options.Model = None,
    out: Annotated[
        Path | None,
        options.make_out_option("Vector file: .h5, .parquet or .npz. Default: print JSON lines."),
    ] = None,
    layers: options.Layers = "average",
    state: options.State = StatePolicy.RESET,
    tokenized: options.Tokenized = False,
    form: options.Form = None,
    language: options.LanguageOption = Language.EN,
    dtype: Annotated[
        str,
        options.make_precision_option(
            "--dtype",
            allowed=VECTORS,
            help="Format of the numbers in the file. f16 needs half the space.",
        ),
    ] = "f32",
    pool: Annotated[
        str | None,
        typer.Option(help="One vector per sentence, over its tokens: mean, max or last."),
    ] = None,
    compress: Annotated[
        bool, typer.Option("--compress", help="Compress the file; saves a tenth to a quarter.")
    ] = False,
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
    """Compute a contextual vector for every token.

    The file appears when it is complete. To resume after an interruption, rerun the command.

    For example:

        elmore embed book.txt --out vectors.h5

        elmore embed sentences.txt --model model/ --tokenized --layers all --out vectors.h5

        elmore embed corpus.conllu --model model/ --layers top --dtype f16 --out vectors.parquet

        elmore embed proteins.fasta --model seqvec/ --layers sum --pool mean --out proteins.h5

        echo "The bank of the river." | elmore embed - > vectors.jsonl
    """
    progress = EmbedProgress(text)
    sentences = options.open_text(
        text,
        tokenized=tokenized,
        form=form,
        language=language,
        state=state,
        on_bytes=progress.set_bytes,
    )
    embedder = options.load_embedder(
        model,
        options=options_path,
        token_embeddings=token_embeddings,
        vocabulary=vocabulary,
        state=state,
        language=language,
        device=device,
        precision=precision,
        tokens_per_batch=tokens_per_batch,
        max_sentence_tokens=max_sentence_tokens,
    )
    options.check_layers(layers, num_layers=embedder.num_layers)
    if out is None:
        if pool is not None:
            raise typer.BadParameter("--pool writes a vector file; give --out")
        _print_vectors(embedder, sentences, layers)
        return
    from elmore.embed.job import embed_to_file  # noqa: PLC0415  brings torch

    with report_interrupt(restart=restart), progress.shown():
        report = embed_to_file(
            embedder,
            sentences,
            out,
            layers=layers,
            dtype=dtype,
            compress=compress,
            pool=pool,
            restart=restart,
            on_progress=progress.set_done,
        )
    if as_json:
        print(json.dumps(asdict(report)))
    else:
        resumed = report.num_resumed_sentences
        done_before = f" ({resumed:,} of them by an earlier run)" if resumed else ""
        print(
            f"{out}: {report.num_sentences:,} sentences{done_before}, "
            f"{report.num_tokens:,} tokens, layers {report.layers}, state {report.state}",
            file=sys.stderr,
        )


def _print_vectors(
    embedder: "Embedder", sentences: Iterator[NumberedSentence], layers: str
) -> None:
    """Print one JSON object per sentence."""
    for_tokens, for_facts = tee(sentences)
    for window in embedder.windows((sentence.tokens for sentence in for_tokens), layers=layers):
        for tokens, vectors in zip(window.sentences, window.vectors, strict=True):
            sentence = next(for_facts)
            facts: dict[str, Any] = {"line": sentence.line}
            if sentence.key is not None:
                facts["key"] = sentence.key
            print(json.dumps({**facts, "tokens": list(tokens), "vectors": vectors.tolist()}))
