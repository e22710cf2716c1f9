"""`elmore finetune`: a model and a domain's text in, a model of the domain out."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elmore.cli import options
from elmore.cli.display import report_interrupt, show_prepare
from elmore.cli.training_display import TrainingDisplay, print_run_report
from elmore.corpus.settings import PrepareSettings
from elmore.errors import ConfigError, ElmoreError
from elmore.settings import apply_change
from elmore.text.language import Language

if TYPE_CHECKING:
    from elmore.corpus.corpus import Corpus
    from elmore.lm.finetune import FinetuneReport, StartingPoint

CORPUS, WORDS = "corpus", "words.txt"


def finetune(
    text: Annotated[
        list[str],
        typer.Argument(
            help="Text of the domain: files, patterns, - for standard input; or a corpus made by "
            "`elmore prepare --extend`, for which options about text have no meaning."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", callback=options.check_out, help="Folder of the run."),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="The model to begin with. Without it: the one that comes with elmore.",
        ),
    ] = None,
    epochs: Annotated[float, typer.Option(help="How often to read the text.")] = 1.0,
    max_new_words: Annotated[
        int, typer.Option(min=0, help="Most words of the domain to add to the vocabulary.")
    ] = 50_000,
    min_count: Annotated[
        int, typer.Option(min=1, help="A word is added if the text has it so often.")
    ] = 3,
    heldout: Annotated[
        float, typer.Option(help="Share of the documents that is not trained on.")
    ] = 0.02,
    heldout_text: Annotated[
        list[str] | None,
        typer.Option(help="Hold out this file or pattern instead; may be given several times."),
    ] = None,
    tokenized: options.Tokenized = False,
    form: options.Form = None,
    language: options.LanguageOption = Language.EN,
    document_sentences: Annotated[
        int | None, typer.Option(min=1, help="End documents after so many sentences, too.")
    ] = None,
    changes: options.Changes = None,
    restart: options.Restart = False,
    device: options.Device = "cpu",
    as_json: options.Json = False,
) -> None:
    """Fine-tune a model on the text of a domain, and report perplexity before and after.

    The model also learns words of the domain. A published model has no softmax and gets a new one.

    For example:

        elmore finetune abstracts.txt --out acl/

        elmore finetune abstracts.txt --model run/model --out acl/

        elmore finetune train.txt --heldout-text dev.txt --out acl/

        elmore embed abstracts.txt --model acl/model --out vectors.h5
    """
    form = options.choose_form(form, tokenized=tokenized)
    # Gentler than training from nothing: half its rate.
    values: dict[str, Any] = {
        "training": {"num_epochs": epochs, "rows": 32},
        "optimizer": {"learning_rate": 0.001},
    }
    for change in changes or []:
        if change.startswith("model."):
            raise ConfigError(
                f"--set {change}: fine-tuning cannot change the architecture; leave this out"
            )
        apply_change(values, change)
    from elmore.corpus.corpus import open_corpus  # noqa: PLC0415  brings numpy
    from elmore.jobs.device import read_device  # noqa: PLC0415  brings torch
    from elmore.lm.finetune import (  # noqa: PLC0415  brings torch
        finetune_model,
        load_start,
        make_settings,
    )
    from elmore.lm.run import RUN  # noqa: PLC0415

    RUN.check(out)
    _check_out(out, model)
    read_device(device)
    start = load_start(model)
    settings = make_settings(start.elmo, values)
    is_corpus = len(text) == 1 and (Path(text[0]) / "corpus.json").is_file()
    if is_corpus:
        if heldout_text:
            raise ConfigError(
                f"{text[0]} is a prepared corpus with a held-out part of its own; leave out "
                "--heldout-text, or give it to elmore prepare"
            )
        corpus = open_corpus(text[0])
    else:
        corpus = _prepare(
            text,
            heldout_text or [],
            out,
            start,
            settings=PrepareSettings(
                form=form,
                language=language,
                max_words=max_new_words,
                min_count=min_count,
                heldout=heldout,
                document_sentences=document_sentences,
            ),
            restart=restart,
            window=settings.training.window,
        )
    del start
    display = TrainingDisplay()
    with report_interrupt(restart=restart), display.shown():
        report = finetune_model(
            model,
            corpus,
            out,
            settings=settings,
            observer=display,
            restart=restart,
            device=device,
        )
    if report is not None:
        _print_report(report, as_json=as_json)


def _check_out(out: Path, model: str | None) -> None:
    """Refuse to work in the folder of the model, or of a run that was no fine-tuning."""
    if (
        model is not None
        and Path(model).exists()
        and Path(model).resolve().is_relative_to(out.resolve())
    ):
        raise ConfigError(f"the model {model} lies in {out}; give another folder for the run")
    if (out / "settings.json").exists() and not (out / WORDS).exists():
        raise ConfigError(f"{out} is the folder of another run; give a new one")


def _prepare(
    text: list[str],
    heldout_text: list[str],
    out: Path,
    start: "StartingPoint",
    *,
    settings: PrepareSettings,
    restart: bool,
    window: int,
) -> "Corpus":
    """Prepare the domain's text with the model's words and its own."""
    from dataclasses import replace  # noqa: PLC0415

    from elmore.corpus.prepare import prepare_corpus  # noqa: PLC0415
    from elmore.files.atomic import replace_file  # noqa: PLC0415
    from elmore.lm.enough_text import check_enough_text  # noqa: PLC0415
    from elmore.lm.run import RUN  # noqa: PLC0415
    from elmore.text.vocabulary import write_entries  # noqa: PLC0415

    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError(
            "several processes would prepare the same text; prepare it first (elmore prepare TEXT "
            "--vocabulary MODEL/softmax_words.txt --extend --out corpus/) and give the corpus"
        )
    sources = options.find_sources(text)
    heldout_sources = options.find_sources(heldout_text)
    is_new = not out.exists()
    release = RUN.lock(out)  # a run at work must keep its corpus
    try:
        words = (out / WORDS).resolve()  # the same, however the folder was named
        with replace_file(words) as temporary:
            write_entries(temporary, start.words)
        if start.words:
            settings = replace(settings, vocabulary=words, extends=True)
        with show_prepare() as on_progress:
            corpus = prepare_corpus(
                sources,
                out / CORPUS,
                settings=settings,
                heldout_sources=heldout_sources,
                restart=restart,
                on_progress=on_progress,
            )
        check_enough_text(corpus, window=window)
    except ElmoreError:
        if is_new:
            shutil.rmtree(out)
        raise
    finally:
        release()
    for note in corpus.about["notes"]:
        print(f"note: {note}", file=sys.stderr)
    return corpus


def _print_report(report: "FinetuneReport", *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(report.to_json()))
        return
    print_run_report(report.run, as_json=False)
    how = "learned anew" if report.before is None else "added to the vocabulary"
    print(f"  words {how}: {report.num_new_words:,}")
    for name, before, after in (
        ("with the domain's words", report.before, report.after),
        ("with the model's words, others as one", report.before_shared, report.after_shared),
    ):
        if before is not None and after is not None:
            print(
                f"  held-out perplexity {name}: {before.perplexity:.2f} before, "
                f"{after.perplexity:.2f} after"
            )
