"""`elmore embed`: sentences in, a vector file out; or many files in, a folder of them out."""

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
from elmore.cli.embed_folder import embed_folder, is_folder_wanted
from elmore.config import VECTORS_IN_FILES, StatePolicy
from elmore.embed.unit import Unit
from elmore.text.files import TextForm
from elmore.text.language import Language
from elmore.text.line_sentences import NumberedSentence
from elmore.wording import count

if TYPE_CHECKING:
    from elmore.embed.embedder import Embedder


def embed(
    context: typer.Context,
    text: Annotated[
        list[str] | None,
        typer.Argument(
            help="Text file, possibly compressed (.gz, .xz, .bz2, .zst), or - for standard input. "
            "If --out is a folder: any number of files, patterns, folders and URLs (s3://, ...).",
        ),
    ] = None,
    model: options.Model = None,
    out: Annotated[
        str | None,
        options.make_out_option(
            "Vector file: .h5, .parquet or .npz. For many files: a folder or its URL, which gets "
            "one vector file per part of the text. Default: print JSON lines.",
            check=options.check_out_or_url,
        ),
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
            allowed=VECTORS_IN_FILES,
            help="Format of the numbers in the file. f16 needs half the space, int8 (with a scale "
            "per vector, in .parquet files) a quarter.",
        ),
    ] = "f32",
    pool: Annotated[
        str | None,
        typer.Option(
            help="One vector per sentence: the mean, max or last of its tokens, or similarity, for "
            "comparing meanings."
        ),
    ] = None,
    per: Annotated[Unit, typer.Option(help="Pool over sentences or documents.")] = Unit.SENTENCE,
    words: Annotated[
        Path | None,
        typer.Option(help="Keep only the vectors of the words in this file, one per line."),
    ] = None,
    dim: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Project vectors to this many dimensions, by a PCA that elmore fit-projection "
            "has stored with the model.",
        ),
    ] = None,
    compress: Annotated[
        bool, typer.Option("--compress", help="Compress the file; saves a tenth to a quarter.")
    ] = False,
    restart: options.Restart = False,
    engine: Annotated[
        str | None,
        typer.Option(help="For a folder: local (processes on this machine, the default) or ray."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="For a folder: processes. Default: one per core.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="For a folder: threads per worker. Default: 1.")
    ] = None,
    file_format: Annotated[
        str | None,
        typer.Option("--format", help="For a folder: parquet (the default), h5 or npz."),
    ] = None,
    files_from: Annotated[
        Path | None,
        typer.Option(help="For a folder: a file that lists texts, one per line."),
    ] = None,
    shard_bytes: Annotated[
        int | None,
        typer.Option(min=1, help="For a folder: bytes of text per part. Default: 4194304."),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            help="For a folder: embed only share i of n (i/n) of the parts, as one of n jobs of "
            "a cluster."
        ),
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="For --engine ray: the address of a Ray cluster.")
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="For a folder: only divide the texts into parts.")
    ] = False,
    kernel: Annotated[
        str | None,
        typer.Option(
            help="Kernel to compute with: avx512, avx2 or torch. Machines with different CPUs give "
            "the same bits only with the same kernel. Default: the fastest."
        ),
    ] = None,
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

        elmore embed 'texts/*.txt.gz' --pool mean --out vectors/
    """
    is_similarity = pool == "similarity"
    for_folder = {
        "--engine": engine,
        "--workers": workers,
        "--threads": threads,
        "--format": file_format,
        "--files-from": files_from,
        "--shard-bytes": shard_bytes,
        "--shard": shard,
        "--address": address,
        "--plan": plan or None,
    }
    given = [name for name, value in for_folder.items() if value is not None]
    settings: dict[str, Any] = {
        "options": options_path,
        "token_embeddings": token_embeddings,
        "vocabulary": vocabulary,
        "state": state,
        "language": language,
        "device": device,
        "precision": precision,
        "tokens_per_batch": tokens_per_batch,
        "max_sentence_tokens": max_sentence_tokens,
    }
    file_settings: dict[str, Any] = {
        # Similarity has layers of its own.
        "layers": None if is_similarity and not options.is_given(context, "layers") else layers,
        "dtype": dtype,
        "compress": compress,
        "restart": restart,
        "pool": pool,
        "per": per,
        "words": words,
        "dim": dim,
    }
    is_folder = is_folder_wanted(text or [], out, given)
    if not text and not is_folder:
        raise typer.BadParameter("give a text file, or - for standard input")
    from elmore.kernels.library import choosing_kernel  # noqa: PLC0415  not for --help

    with choosing_kernel(kernel):
        if is_folder:
            assert out is not None
            embed_folder(
                text or [],
                out,
                model=model,
                model_settings=settings,
                form=options.choose_form(form, tokenized=tokenized),
                engine=engine or "local",
                workers=workers,
                threads=threads or 1,
                file_format=file_format or "parquet",
                files_from=files_from,
                shard_bytes=shard_bytes,
                share=shard,
                address=address,
                only_plans=plan,
                kernel=kernel,
                as_json=as_json,
                **file_settings,
            )
        else:
            assert text is not None
            _embed_one(
                text[0],
                None if out is None else Path(out),
                model=model,
                settings=settings,
                tokenized=tokenized,
                form=form,
                as_json=as_json,
                file_settings=file_settings,
            )


def _embed_one(
    text: str,
    out: Path | None,
    *,
    model: str | None,
    settings: dict[str, Any],
    tokenized: bool,
    form: TextForm | None,
    as_json: bool,
    file_settings: dict[str, Any],
) -> None:
    """Embed one text into a vector file, or print its vectors."""
    progress = EmbedProgress(text)
    # Pooling per document needs the ends of documents.
    reads_documents = file_settings["pool"] and file_settings["per"] is Unit.DOCUMENT
    sentences = options.open_text(
        text,
        tokenized=tokenized,
        form=form,
        language=settings["language"],
        state=StatePolicy.DOCUMENT if reads_documents else settings["state"],
        on_bytes=progress.set_bytes,
    )
    embedder = options.load_embedder(model, **settings)
    layers = file_settings["layers"]
    if layers is not None:
        options.check_layers(layers, num_layers=embedder.num_layers)
    if out is None:
        for name in ("pool", "words", "dim"):
            if file_settings[name] is not None:
                raise typer.BadParameter(f"--{name} writes a vector file; give --out")
        _print_vectors(embedder, sentences, layers)
        return
    from elmore.embed.job import embed_to_file  # noqa: PLC0415  brings torch

    with report_interrupt(restart=file_settings["restart"]), progress.shown():
        report = embed_to_file(
            embedder,
            sentences,
            out,
            on_progress=progress.set_done,
            **file_settings,
        )
    if as_json:
        print(json.dumps(asdict(report)))
    else:
        resumed = report.num_resumed_sentences
        done_before = f" ({resumed:,} of them by an earlier run)" if resumed else ""
        print(
            f"{out}: {count(report.num_sentences, 'sentence')}{done_before}, "
            f"{count(report.num_tokens, 'token')}, layers {report.layers}, state {report.state}",
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
