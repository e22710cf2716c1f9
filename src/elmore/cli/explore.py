"""`elmore explore`: a page that shows the uses of words, opened in the browser."""

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from elmore.cli import options
from elmore.cli.index_building import build_shown
from elmore.cli.missing_extra import explaining_missing_extra
from elmore.text.language import Language


def explore(
    corpus: Annotated[
        list[str] | None,
        typer.Argument(
            help="An index made by `elmore index`, or text files or folders of them, which are "
            "indexed first. "
            "Default: the example that comes with elmore."
        ),
    ] = None,
    model: options.Model = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="Folder of a task trained with `elmore fit`, or NAME=FOLDER. Can be repeated."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        options.make_out_option(
            "Folder for the index of text files. Default: the name of the first file or folder "
            "with .index, in the current folder."
        ),
    ] = None,
    tokenized: options.Tokenized = False,
    form: options.Form = None,
    language: options.LanguageOption = Language.EN,
    restart: options.Restart = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 picks a free port.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    device: options.Device = "cpu",
    precision: options.PrecisionOption = "f32",
) -> None:
    """Look at word vectors in context: maps of uses, nearest uses, sentences, surprise, tasks.

    The page is served on this machine only and loads nothing from elsewhere. Text files are
    indexed first; the next time, that index is used. Ctrl-C ends the server.

    For example:

        elmore explore

        elmore explore book.txt

        elmore explore texts/

        elmore explore index/ --task entities/
    """
    with explaining_missing_extra(needed_for="elmore explore", extra="explore"):
        from elmore.serve.settings import ServeSettings  # noqa: PLC0415
        from elmore.serve.start import serve  # noqa: PLC0415
    chosen_form = options.choose_form(form, tokenized=tokenized)
    from elmore.explore.index_state import looks_like_index  # noqa: PLC0415  brings numpy

    index = corpus[0] if corpus else None
    if corpus and not (len(corpus) == 1 and looks_like_index(Path(corpus[0]))):
        from elmore.explore.index_sources import find_text_files  # noqa: PLC0415

        paths = find_text_files(corpus)
        first = Path(corpus[0]) if Path(corpus[0]).is_dir() else paths[0]
        folder = out or Path(first.resolve().name.split(".")[0] + ".index")
        embedder = options.load_embedder(
            model, language=language, device=device, precision=precision
        )
        report = build_shown(paths, folder, embedder=embedder, form=chosen_form, restart=restart)
        del embedder
        print(f"elmore: the index of {report.num_tokens:,} tokens is in {folder}", file=sys.stderr)
        index = str(folder)
    elif index is not None:
        from elmore.explore.use_index import open_index  # noqa: PLC0415  brings torch

        language = Language(open_index(index).language)

    def announce(address: str) -> None:
        print(f"elmore: open {address} in a browser (Ctrl-C ends the server)", flush=True)
        if browser and _has_browser():
            webbrowser.open(address)

    serve(
        ServeSettings(
            models=() if model is None else (model,),
            index=index,
            tasks=tuple(task or ()),
            port=port,
            has_access_log=False,
            device=device,
            precision=precision,
            language=language,
        ),
        announce=announce,
    )


def _has_browser() -> bool:
    """Return whether there is a screen; a browser in the terminal would only be in the way."""
    if "SSH_CONNECTION" in os.environ:
        return False
    is_desktop = sys.platform in ("darwin", "win32")
    return is_desktop or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
