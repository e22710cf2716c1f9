"""`elmore convert`: any published model to elmore's folder, and elmore's folder to bilm-tf."""

import json
import sys
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from elmore.cli import options
from elmore.config import SOFTMAX_ON_DISK, WEIGHTS_ON_DISK, Precision
from elmore.errors import ModelError


class Target(StrEnum):
    """The format to write."""

    ELMORE = "elmore"
    BILM_TF = "bilm-tf"


def convert(
    source: Annotated[
        str,
        typer.Argument(
            help="bilm-tf weights (.hdf5) or TensorFlow checkpoint, ELMoForManyLangs folder, "
            "archive of one of them, model folder or hub id."
        ),
    ],
    out: Annotated[
        Path,
        options.make_out_option("Model folder; with --to bilm-tf, an .hdf5 file."),
    ],
    to: Annotated[Target, typer.Option(help="Format to write.")] = Target.ELMORE,
    store: Annotated[
        str,
        options.make_precision_option(
            "--store",
            allowed=WEIGHTS_ON_DISK,
            help="Format of the stored weights. f16 and bf16 need half the space and round to 11 "
            "and 8 bits.",
        ),
    ] = "f32",
    store_softmax: Annotated[
        str | None,
        options.make_precision_option(
            "--store-softmax",
            allowed=SOFTMAX_ON_DISK,
            help="Format of the stored LM head, by default that of --store. int8 needs half the "
            "space of f16.",
        ),
    ] = None,
    no_softmax: Annotated[
        bool,
        typer.Option(
            "--no-softmax",
            help="Leave out the LM head; the model can then embed, but not predict words.",
        ),
    ] = False,
    options_path: options.Options = None,
    token_embeddings: options.TokenEmbeddings = None,
    vocabulary: options.Vocabulary = None,
    softmax: options.Softmax = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Overwrite an options.json that describes another model."),
    ] = False,
    from_zeros: Annotated[
        bool,
        typer.Option(
            "--from-zeros",
            help="Start sentences from zeros. bilm-tf files cannot store a model's rest state.",
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Convert a model to another format; with --store f32, its vectors stay the same.

    A model folder keeps the LM head of its source, if there is one.

    For example:

        elmore convert lm_weights.hdf5 --options options.json --out model/

        elmore convert many_langs_folder/ --out model/

        elmore convert model.ckpt-935588 --vocabulary vocab.txt --out model/

        elmore convert run/model --out small/ --store f16

        elmore convert run/model --out small/ --store f16 --store-softmax int8

        elmore convert model/ --to bilm-tf --out weights.hdf5

        elmore convert run/model --to bilm-tf --from-zeros --out weights.hdf5
    """
    from elmore.lm.language_model import NoSoftmaxError, load_language_model  # noqa: PLC0415
    from elmore.weights.bilm_tf import write_bilm_tf  # noqa: PLC0415  brings torch
    from elmore.weights.loading import find_source, load_model  # noqa: PLC0415
    from elmore.weights.model_folder import check_target  # noqa: PLC0415
    from elmore.weights.softmax_file import remove_softmax  # noqa: PLC0415
    from elmore.weights.stored_similarity import (  # noqa: PLC0415
        read_stored_similarity,
        replace_similarity,
    )

    _check_stores(to, store, store_softmax, no_softmax=no_softmax)
    if to is Target.ELMORE:
        check_target(out)
        if out.exists() and Path(source).exists() and out.resolve() == Path(source).resolve():
            raise ModelError(f"{out} is the model itself; give another folder")
    files: dict[str, Any] = {
        "options": options_path,
        "token_embeddings": token_embeddings,
        "vocabulary": vocabulary,
        "softmax": softmax,
    }
    predicting = None
    if not no_softmax and not token_embeddings:
        with suppress(NoSoftmaxError):
            predicting = load_language_model(source, **files)
    if store_softmax is not None and predicting is None:
        raise ModelError(
            f"{source} has no LM head that could be stored as {store_softmax}; leave out "
            "--store-softmax"
        )
    model = predicting.elmo if predicting else load_model(source, **files)
    options.print_notes(model)
    similarity = read_stored_similarity(find_source(source, **files), model=model.fingerprint())
    if to is Target.BILM_TF:
        written = write_bilm_tf(model, out, overwrite=overwrite, from_zeros=from_zeros)
        if predicting:
            print(
                "note: bilm-tf files cannot store an LM head, so it was left out; score "
                "and evaluate need the original folder",
                file=sys.stderr,
            )
    else:
        if from_zeros:
            model.bilm.initial_hidden.zero_()
            model.bilm.initial_cell.zero_()
        if predicting:
            predicting.save(out, store=store, store_softmax=store_softmax)
        else:
            model.save_pretrained(out, store=store)
            remove_softmax(out)  # of an earlier model in this folder
        replace_similarity(out, similarity)
        written = sorted(path for path in out.iterdir() if path.is_file())
    if as_json:
        print(json.dumps({"written": [str(path) for path in written]}))
    else:
        print("wrote " + ", ".join(str(path) for path in written), file=sys.stderr)


def _check_stores(to: Target, store: str, store_softmax: str | None, *, no_softmax: bool) -> None:
    """Refuse formats that the target does not have."""
    if to is Target.BILM_TF and store != Precision.F32:
        raise typer.BadParameter(f"bilm-tf files cannot store {store}; leave out --store")
    if store_softmax is not None and (to is Target.BILM_TF or no_softmax):
        raise typer.BadParameter(
            "--store-softmax has no effect where the LM head is left out; leave out the option"
        )
