"""`elmore info`: facts about a model, or about this machine."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from elmore.cli import options


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
        rows = {name: _show(value) for name, value in facts.items() if value is not None}
        _print_table({name.replace("_", " "): value for name, value in rows.items()})


def _print_system(*, as_json: bool) -> None:
    from elmore.cli.system import describe_system, to_rows  # noqa: PLC0415  brings kernels

    facts = describe_system()
    if as_json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        _print_table(to_rows(facts))


def _print_table(rows: Mapping[str, str]) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(Text(name), Text(value))  # so that brackets are not read as markup
    Console().print(table)


def _show(value: str | float | bool) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{value:,}"
