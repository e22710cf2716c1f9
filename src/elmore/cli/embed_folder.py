"""`elmore embed ... --out FOLDER/`: many text files, a folder of vector files."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from elmore.cli import options
from elmore.cli.display import report_interrupt, show_files
from elmore.wording import count

if TYPE_CHECKING:
    from elmore.embed.many_files.job import FilesReport

MAX_BAD_SHOWN = 20


def is_folder_wanted(texts: Sequence[str], out: str | None, given: Sequence[str]) -> bool:
    """Return whether to write a folder; raise an error for options that do not fit together."""
    # A missing path with a suffix is a file; without one, it was always an error.
    is_folder = out is not None and ("://" in out or not Path(out).suffix or Path(out).is_dir())
    if is_folder and texts != ["-"]:
        return True
    if given:
        raise typer.BadParameter(f"{given[0]} is for a folder of vectors; give --out FOLDER/")
    if len(texts) > 1:
        raise typer.BadParameter(
            f"{len(texts)} texts are embedded into a folder of vectors; give --out FOLDER/, or one "
            "text"
        )
    return False


def embed_folder(
    texts: Sequence[str],
    out: str,
    *,
    model: str | None,
    model_settings: dict[str, Any],
    as_json: bool,
    only_plans: bool,
    restart: bool,
    shard_bytes: int | None,
    engine: str,
    workers: int | None,
    share: str | None,
    address: str | None,
    **settings: Any,
) -> None:
    """Embed texts; exit with status 1 if some could not be embedded."""
    from elmore.cluster.embed_files import embed_files  # noqa: PLC0415  brings torch
    from elmore.embed.many_files.job import SHARD_BYTES, plan_files  # noqa: PLC0415

    embedder = options.load_embedder(model, **model_settings)
    if settings["layers"] is not None:
        options.check_layers(settings["layers"], num_layers=embedder.num_layers)
    settings |= {"shard_bytes": shard_bytes or SHARD_BYTES, "restart": restart}
    with report_interrupt(restart=restart):
        if only_plans:
            job = plan_files(embedder, texts, out, **settings)
            num_done = len(job.shards) - len(job.find_pending())
            done = f", {num_done:,} of them embedded by an earlier run" if num_done else ""
            print(f"{out}: {count(len(job.shards), 'part')} to embed{done}", file=sys.stderr)
            _print_bad(job.plan.bad_inputs)
            if job.plan.bad_inputs:
                raise typer.Exit(1)
            return
        with show_files() as on_progress:
            report = embed_files(
                embedder,
                texts,
                out,
                engine=engine,
                workers=workers,
                share=share,
                address=address,
                on_progress=on_progress,
                **settings,
            )
    if as_json:
        print(json.dumps(asdict(report)))
    else:
        _print_report(report)
        _print_bad(report.bad)
    if report.bad:
        raise typer.Exit(1)


def _print_report(report: "FilesReport") -> None:
    num_before = report.num_parts_before
    before = f" ({num_before:,} of them by an earlier run)" if num_before else ""
    missing = "" if report.is_complete else "; other parts are still to be embedded"
    print(
        f"{report.out}: {count(report.num_parts, 'part')}{before}, "
        f"{count(report.num_sentences, 'sentence')}, {count(report.num_tokens, 'token')}, "
        f"{report.num_bytes / 1e6:,.1f} MB{missing}",
        file=sys.stderr,
    )


def _print_bad(bad: Mapping[str, str]) -> None:
    for name, reason in list(bad.items())[:MAX_BAD_SHOWN]:
        print(f"elmore: not embedded: {name}: {reason}", file=sys.stderr)
    if len(bad) > MAX_BAD_SHOWN:
        print(f"elmore: and {len(bad) - MAX_BAD_SHOWN} more", file=sys.stderr)
