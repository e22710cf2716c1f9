"""`elmore info`: facts about a model, or about this machine."""

import json
from pathlib import Path
from typing import Annotated

import typer

from elmore.cli import options
from elmore.cli.tables import print_facts
from elmore.wording import format_bytes

# Titles of facts whose names in JSON are shorter or older.
TITLES = {
    "memory_bytes": "memory",
    "stored": "stored as",
    "stored_bytes": "file size",
    "has_softmax": "LM head",
    "softmax_missing": "LM head, missing files",
    "softmax_kind": "LM head type",
    "softmax_words": "LM head words",
    "softmax_stored": "LM head stored as",
    "softmax_bytes": "LM head file size",
    "softmax_fits": "LM head fits the model",
}


def info(
    source: Annotated[
        str | None,
        typer.Argument(
            help="Any model that elmore can load. Default: the English model that comes "
            "with elmore."
        ),
    ] = None,
    options_path: options.Options = None,
    token_embeddings: options.TokenEmbeddings = None,
    vocabulary: options.Vocabulary = None,
    softmax: options.Softmax = None,
    system: Annotated[
        bool,
        typer.Option(
            "--system",
            help="Show kernels, CPU, threads, versions and optional libraries instead.",
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Show a model's size, layers, memory use, training data and whether it has an LM head.

    For example:

        elmore info model/

        elmore info lm_weights.hdf5 --json

        elmore info owner/name               # a model on the Hugging Face hub

        elmore info --system
    """
    if system:
        if source or options_path or token_embeddings or vocabulary or softmax:
            raise typer.BadParameter("--system describes this machine; leave out the model")
        _print_system(as_json=as_json)
        return
    from elmore.lm.language_model import find_model  # noqa: PLC0415
    from elmore.weights.describe import describe_model  # noqa: PLC0415  brings torch
    from elmore.weights.loading import find_source, open_source, read_source  # noqa: PLC0415

    found = find_source(
        source,
        options=options_path,
        token_embeddings=token_embeddings,
        vocabulary=vocabulary,
        softmax=softmax,
    )
    folder = find_model(found)
    if found.is_default:
        facts = describe_model(read_source(found), folder=folder)
    else:
        with open_source(found) as opened:
            facts = describe_model(
                read_source(opened), folder=Path(str(opened.path)), checkpoint=opened.softmax
            )
    if as_json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        shown = {name: value for name, value in facts.items() if value is not None}
        print_facts({_name(name): _show(name, value) for name, value in shown.items()})


def _print_system(*, as_json: bool) -> None:
    from elmore.cli.system import describe_system, to_rows  # noqa: PLC0415  brings kernels

    facts = describe_system()
    if as_json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        print_facts(to_rows(facts))


def _name(fact: str) -> str:
    return TITLES.get(fact, fact.replace("_", " ").replace("lstm", "LSTM"))


def _show(fact: str, value: str | float | bool) -> str:
    if fact.endswith("_bytes"):
        return format_bytes(int(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{value:,}"
