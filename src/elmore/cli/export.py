"""`elmore export`: a model in the format of another program."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from elmore.cli import options


class ExportFormat(StrEnum):
    """The format to write."""

    ONNX = "onnx"


def export(
    out: Annotated[Path, options.make_out_option("The file to write: model.onnx.")],
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="Any model that other commands take as --model. Default: the English model that "
            "comes with elmore.",
        ),
    ] = None,
    to: Annotated[ExportFormat, typer.Option(help="Format to write.")] = ExportFormat.ONNX,
    options_path: options.Options = None,
    token_embeddings: options.TokenEmbeddings = None,
    vocabulary: options.Vocabulary = None,
    as_json: options.Json = False,
) -> None:
    """Export a model to ONNX; the file runs in onnxruntime and in browsers, without torch.

    Its vectors are compared with elmore's before the file is written. The LM head is left out.

    For example:

        elmore export --out english.onnx

        elmore export run/model --to onnx --out model.onnx
    """
    from elmore.export.onnx import write_onnx  # noqa: PLC0415  brings torch and onnxruntime
    from elmore.weights.loading import load_model  # noqa: PLC0415

    assert to is ExportFormat.ONNX
    model = load_model(
        source,
        options=options_path,
        token_embeddings=token_embeddings,
        vocabulary=vocabulary,
    )
    options.print_notes(model)
    write_onnx(model, out)
    if as_json:
        print(json.dumps({"written": [str(out)]}))
    else:
        print(f"wrote {out}", file=sys.stderr)
