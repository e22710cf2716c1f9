"""`elmore convert`: any published model to elmore's folder, and elmore's folder to bilm-tf."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from elmore.cli import options
from elmore.errors import ModelError


class Target(StrEnum):
    """What to write."""

    ELMORE = "elmore"
    BILM_TF = "bilm-tf"


def convert(
    source: Annotated[
        str,
        typer.Argument(help="bilm-tf weights (.hdf5), ELMoForManyLangs folder, or model folder."),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Model folder, or .hdf5 file with --to bilm-tf.")
    ],
    to: Annotated[Target, typer.Option(help="Format to write.")] = Target.ELMORE,
    options_path: options.Options = None,
    token_embeddings: options.TokenEmbeddings = None,
    vocabulary: options.Vocabulary = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace an options.json that describes another model."),
    ] = False,
    from_zeros: Annotated[
        bool,
        typer.Option(
            "--from-zeros",
            help="Let sentences start from zeros: bilm-tf has no place for a model's rest state.",
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Convert a model between formats; the vectors stay the same.

    For example:

        elmore convert lm_weights.hdf5 --options options.json --out model/

        elmore convert many_langs_folder/ --out model/

        elmore convert model/ --to bilm-tf --out weights.hdf5

        elmore convert run/model --to bilm-tf --from-zeros --out weights.hdf5
    """
    from elmore.weights.bilm_tf import write_bilm_tf  # noqa: PLC0415  brings torch
    from elmore.weights.loading import load_model  # noqa: PLC0415
    from elmore.weights.model_folder import check_target  # noqa: PLC0415

    if to is Target.ELMORE:
        check_target(out)
        if out.exists() and Path(source).exists() and out.resolve() == Path(source).resolve():
            raise ModelError(f"{out} is the model itself; give another folder to write to")
    model = load_model(
        source, options=options_path, token_embeddings=token_embeddings, vocabulary=vocabulary
    )
    options.print_notes(model)
    if to is Target.BILM_TF:
        written = write_bilm_tf(model, out, overwrite=overwrite, from_zeros=from_zeros)
    else:
        if from_zeros:
            model.bilm.initial_hidden.zero_()
            model.bilm.initial_cell.zero_()
        model.save_pretrained(out)
        if (Path(source) / "softmax.json").exists():
            print(
                "note: the softmax stays behind; score and evaluate need the original folder",
                file=sys.stderr,
            )
        written = sorted(path for path in out.iterdir() if path.is_file())
    if as_json:
        print(json.dumps({"written": [str(path) for path in written]}))
    else:
        print("wrote " + ", ".join(str(path) for path in written), file=sys.stderr)
