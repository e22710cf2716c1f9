"""`elmore export-words`: static word vectors for programs that read word2vec files."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from elmore.cli import options
from elmore.text.language import Language
from elmore.wording import count


def export_words(
    out: Annotated[
        Path, options.make_out_option("File to write: .txt or .vec (text), .bin (binary).")
    ],
    words: Annotated[
        Path | None,
        typer.Option(help="Words to export, one per line. Default: the words of --text."),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(
            help="Text file: export the mean vector over the uses of each word in this text."
        ),
    ] = None,
    model: options.Model = None,
    layers: Annotated[
        str | None,
        typer.Option(
            "--layers",
            "-l",
            help="Layer to export: a number, top or average. Default: average with --text, "
            "otherwise 0.",
        ),
    ] = None,
    min_count: Annotated[
        int, typer.Option(min=1, help="Leave out words that occur less often in --text.")
    ] = 1,
    max_words: Annotated[
        int | None, typer.Option(min=1, help="Export only this many words of --text.")
    ] = None,
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
    """Write one static vector per word, in word2vec's text or binary format.

    With only --words, a vector depends only on the spelling of its word (layer 0). With --text, it
    is the mean over all uses of the word. gensim, fastText's tools and others read these files.

    For example:

        elmore export-words --words words.txt --out words.bin

        elmore export-words --text book.txt --min-count 5 --out book.vec
    """
    if text == "-":
        raise typer.BadParameter("--text is read twice, so it must be a file; give its path")
    if words is None and text is None:
        raise typer.BadParameter("give --words, --text or both")
    from elmore.embed.word2vec_file import check_word2vec_path  # noqa: PLC0415
    from elmore.embed.word_export import export_words as export  # noqa: PLC0415

    check_word2vec_path(out)
    embedder = options.load_embedder(
        model,
        options=options_path,
        token_embeddings=token_embeddings,
        vocabulary=vocabulary,
        device=device,
        precision=precision,
        language=language,
    )
    if layers is not None and text is not None:  # without a text, only layer 0 exists
        options.check_layers(
            layers,
            num_layers=embedder.num_layers,
            names=("average", "sum", "top"),
            may_be_several=False,
        )
    table = export(
        out,
        words=words,
        text=text,
        model=embedder,
        layers=layers,
        min_count=min_count,
        max_words=max_words,
        form=options.choose_form(form, tokenized=tokenized),
    )
    if as_json:
        written = {"written": str(out), "words": len(table.words), "vector_dim": table.vector_dim}
        print(json.dumps(written))
        return
    words_written = count(len(table.words), "word")
    print(f"wrote {out}: {words_written}, {table.vector_dim} numbers each", file=sys.stderr)
