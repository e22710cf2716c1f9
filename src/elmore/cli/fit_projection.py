"""`elmore fit-projection`: a PCA that makes vectors shorter, stored with the model."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from elmore.cli import options
from elmore.text.language import Language


def fit_projection(
    text: options.Text,
    dim: Annotated[int, typer.Option(min=1, help="Dimensions to keep.")],
    model: options.Model = None,
    out: Annotated[
        Path | None,
        options.make_out_option(
            "Model folder to write. Default: add the projection to the folder of --model."
        ),
    ] = None,
    layers: options.SingleVector = "average",
    max_tokens: Annotated[
        int, typer.Option(min=1, help="Fit it to this many tokens of the text.")
    ] = 200_000,
    tokenized: options.Tokenized = False,
    form: options.Form = None,
    language: options.LanguageOption = Language.EN,
) -> None:
    """Fit a PCA to a sample of text and store it with the model, for `elmore embed --dim`.

    Jobs that use the same model folder have vectors that can be compared.

    For example:

        elmore fit-projection sample.txt --dim 128 --out english-128/

        elmore embed book.txt --model english-128/ --dim 128 --out vectors.parquet
    """
    sentences = options.open_text(text, tokenized=tokenized, form=form, language=language)
    embedder = options.load_embedder(model, language=language)
    options.check_layers(
        layers,
        num_layers=embedder.num_layers,
        names=("average", "sum", "top"),
        may_be_several=False,
    )
    from elmore.embed.projection import find_projection  # noqa: PLC0415  brings torch
    from elmore.embed.projection import fit_projection as fit  # noqa: PLC0415

    folder = fit(embedder, sentences, dim=dim, out=out, layers=layers, max_tokens=max_tokens)
    loaded = options.load_embedder(str(folder), language=language)
    share = find_projection(loaded, layers=layers, dim=dim).variance
    print(
        f"{folder}: layers {layers} to {dim} dimensions, which keep {share:.1%} of the variance",
        file=sys.stderr,
    )
