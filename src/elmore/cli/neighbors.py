"""`elmore neighbors`: similar uses of a word."""

import json
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmore.cli import options
from elmore.text.files import TextForm
from elmore.text.language import Language
from elmore.text.line_sentences import split_tokenized
from elmore.text.tokens import parse_sentence

if TYPE_CHECKING:
    from rich.text import Text

    from elmore.explore.neighbors import Context

# Tokens shown on either side of the word.
MARGIN = 9


def neighbors(
    word: Annotated[str, typer.Argument(help="The word; case is ignored.")],
    text: Annotated[
        str,
        typer.Argument(
            help="Text file, possibly compressed (.gz, .xz, .bz2, .zst), - for standard input, or "
            "an index made by elmore index."
        ),
    ],
    model: options.Model = None,
    in_sentence: Annotated[
        str | None,
        typer.Option(
            "--in", help="A sentence with the word: find the uses most similar to this one."
        ),
    ] = None,
    top: Annotated[int, typer.Option("--top", "-n", min=1, help="Number of results to show.")] = 10,
    layers: options.SingleVector = "top",
    tokenized: options.Tokenized = False,
    form: options.Form = None,
    language: options.LanguageOption = Language.EN,
    options_path: options.Options = None,
    token_embeddings: options.TokenEmbeddings = None,
    vocabulary: options.Vocabulary = None,
    device: options.Device = "cpu",
    precision: options.PrecisionOption = "f32",
    as_json: options.Json = False,
) -> None:
    """Find similar uses of a word.

    With --in: the uses most similar to that one. Without: the most similar pairs of uses.

    For example:

        elmore neighbors bank book.txt --in "He sat on the bank of the river."

        elmore neighbors play news.txt --top 20 --json

        elmore neighbors bank index/
    """
    has_index = text != "-" and Path(text).is_dir()
    if not has_index:
        sentences = options.open_sentences(text, tokenized=tokenized, form=form, language=language)
    query = None
    if in_sentence is not None:
        is_tokenized = tokenized or form is TextForm.TOKENIZED
        query = (
            split_tokenized(in_sentence)
            if is_tokenized
            else parse_sentence(in_sentence, language=language)
        )
    embedder = None
    if query is not None or not has_index:  # an index has the vectors of its own sentences
        embedder = options.load_embedder(
            model,
            options=options_path,
            token_embeddings=token_embeddings,
            vocabulary=vocabulary,
            device=device,
            precision=precision,
            language=language,
        )
    from elmore.explore.index_neighbors import find_indexed_neighbors  # noqa: PLC0415
    from elmore.explore.neighbors import (  # noqa: PLC0415  brings torch
        collect_contexts,
        nearest_to,
        pair_contexts,
    )
    from elmore.explore.use_index import open_index  # noqa: PLC0415

    check_layers = partial(
        options.check_layers, layers, names=("average", "sum", "top"), may_be_several=False
    )
    if embedder is None or has_index:
        index = open_index(text)
        check_layers(num_layers=index.num_layers)
        found = find_indexed_neighbors(
            index, word, query=query, embedder=embedder, top=top, layers=layers
        )
        num_uses = index.uses(word, limit=1).total
    elif query is not None:
        check_layers(num_layers=embedder.num_layers)
        found = nearest_to(embedder, word, sentences, query=query, top=top, layers=layers)
        num_uses = len(found)
    else:
        check_layers(num_layers=embedder.num_layers)
        contexts, vectors = collect_contexts(embedder, word, sentences, layers=layers)
        found = pair_contexts(contexts, vectors, top=top)
        num_uses = len(contexts)
    if as_json:
        print(json.dumps([asdict(neighbor) for neighbor in found], ensure_ascii=False))
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table("cosine")
    # With rich's default, a full line of Chinese loses a character to "…".
    for title in ["use"] if in_sentence else ["one use", "most similar use"]:
        table.add_column(title, overflow="fold")
    for neighbor in found:
        shown = [neighbor.context] if in_sentence else [neighbor.context, neighbor.other]
        table.add_row(f"{neighbor.similarity:.3f}", *map(_mark, shown))
    if found:
        Console().print(table)
    elif num_uses:
        print(f"{word!r} occurs only once in the text, so it has no pair of uses", file=sys.stderr)
    else:
        print(f"{word!r} does not occur in the text", file=sys.stderr)


def _mark(context: "Context") -> "Text":
    """Return a use of the word, with the word in brackets and some tokens around it."""
    from rich.text import Text  # noqa: PLC0415

    start, end = max(0, context.position - MARGIN), context.position + MARGIN + 1
    line = Text("… " if start else "")
    line.append(" ".join([*context.tokens[start : context.position], ""]))
    line.append(f"[{context.tokens[context.position]}]", style="bold")
    line.append(" ".join(["", *context.tokens[context.position + 1 : end]]))
    line.append(" …" if end < len(context.tokens) else "")
    return line
