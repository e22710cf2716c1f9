"""`elmore serve`: an HTTP server for vectors."""

from pathlib import Path
from typing import Annotated

import typer

from elmore.cli import options
from elmore.cli.missing_extra import explaining_missing_extra
from elmore.text.language import Language

_MODEL = typer.Option(
    "--model",
    "-m",
    help="A model as for `elmore embed`, or NAME=MODEL. Can be repeated; requests choose a model "
    "by its name. Default: the English model that comes with elmore.",
)


def serve(
    model: Annotated[list[str] | None, _MODEL] = None,
    index: Annotated[
        Path | None,
        typer.Option(
            help="Folder of an index made by `elmore index`, for the page and for /uses, /map and "
            "/nearest. Default: the example that comes with elmore."
        ),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="Folder of a task trained with `elmore fit`, or NAME=FOLDER, for the page and for "
            "/predict. Can be repeated."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on. The default is reachable locally only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 picks a free port.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes.")] = 1,
    api_key: Annotated[
        str | None,
        typer.Option(
            envvar="ELMORE_API_KEY",
            help="Ask clients for this key (Authorization: Bearer KEY). Set the variable rather "
            "than the option, which other users of this machine can see.",
        ),
    ] = None,
    cors_origin: Annotated[
        list[str] | None,
        typer.Option(help="Let web pages of this origin use the server. Can be repeated."),
    ] = None,
    access_log: Annotated[
        bool, typer.Option(help="Log route, status and time of every request, never its text.")
    ] = True,
    layers: Annotated[
        str,
        typer.Option(
            "--layers",
            "-l",
            help="Layers of /v1/embeddings, /embed and /embed_all: average, top or a number.",
        ),
    ] = "average",
    language: options.LanguageOption = Language.EN,
    device: options.Device = "cpu",
    precision: options.PrecisionOption = "f32",
    max_sentence_tokens: options.MaxSentenceTokens = 10_000,
    max_request_tokens: Annotated[
        int, typer.Option(min=1, help="Larger requests are refused (413).")
    ] = 20_000,
    max_body_bytes: Annotated[
        int, typer.Option(min=1, help="Larger bodies are refused (413).")
    ] = 2_000_000,
    max_answer_bytes: Annotated[
        int, typer.Option(min=1, help="Requests for larger answers are refused (413).")
    ] = 100_000_000,
    max_queue_tokens: Annotated[
        int,
        typer.Option(
            min=1,
            help="Tokens waiting or being computed; beyond them, requests are refused (429). "
            "Fewer tokens mean shorter waits.",
        ),
    ] = 20_000,
    batch_tokens: Annotated[
        int,
        typer.Option(min=1, help="Tokens of different requests computed together. 1: no batching."),
    ] = 2048,
    long_tokens: Annotated[
        int,
        typer.Option(
            min=1,
            help="Requests of this many tokens do not hold up shorter ones: they wait in a "
            "queue of their own.",
        ),
    ] = 512,
    grace_seconds: Annotated[
        float, typer.Option(min=1, help="Time for finishing requests after SIGTERM.")
    ] = 30.0,
) -> None:
    """Serve vectors, layers, scores and gap filling over HTTP.

    The routes are those of OpenAI's embeddings (/v1/embeddings) and of text-embeddings-inference
    (/embed, /embed_all), and /layers, /tokenize, /score and /fill. See /docs.

    For example:

        elmore serve

        elmore serve --model news=models/news --model law=models/law --port 9000

        ELMORE_API_KEY=secret elmore serve --host 0.0.0.0 --workers 4
    """
    with explaining_missing_extra(needed_for="elmore serve", extra="serve"):
        from elmore.serve.settings import Limits, ServeSettings  # noqa: PLC0415
        from elmore.serve.start import serve as start  # noqa: PLC0415
    start(
        ServeSettings(
            models=tuple(model or ()),
            index=None if index is None else str(index),
            tasks=tuple(task or ()),
            host=host,
            port=port,
            workers=workers,
            api_key=api_key or None,
            cors_origins=tuple(cors_origin or ()),
            has_access_log=access_log,
            grace_seconds=grace_seconds,
            device=device,
            precision=precision,
            language=language,
            layers=layers,
            max_sentence_tokens=max_sentence_tokens,
            limits=Limits(
                max_body_bytes=max_body_bytes,
                max_request_tokens=max_request_tokens,
                max_answer_bytes=max_answer_bytes,
                max_queue_tokens=max_queue_tokens,
                long_tokens=long_tokens,
                batch_tokens=batch_tokens,
            ),
        )
    )
