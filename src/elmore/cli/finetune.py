"""`elmore finetune`: continue training a model on the text of a domain."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmore.cli import options
from elmore.cli.display import report_interrupt, show_prepare
from elmore.cli.training_display import TrainingDisplay, print_run_report
from elmore.corpus.settings import PrepareSettings
from elmore.text.language import Language

if TYPE_CHECKING:
    from elmore.lm.finetune import FinetuneReport


def finetune(
    text: Annotated[
        list[str],
        typer.Argument(
            help="Text of the domain: files, patterns such as 'texts/*.gz', or - for "
            "standard input. Or a corpus made by `elmore prepare --extend`; then "
            "options about text are ignored."
        ),
    ],
    out: Annotated[
        Path,
        options.make_out_option("Folder for the run."),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="The model to start from. Default: the English model that comes with elmore.",
        ),
    ] = None,
    epochs: Annotated[float, typer.Option(help="Number of passes over the text.")] = 1.0,
    max_new_words: Annotated[
        int, typer.Option(min=0, help="Maximum number of new words to add to the vocabulary.")
    ] = 50_000,
    min_count: Annotated[
        int, typer.Option(min=1, help="Add only words that occur at least this often.")
    ] = 3,
    heldout: options.Heldout = 0.02,
    heldout_text: options.HeldoutText = None,
    tokenized: options.Tokenized = False,
    form: options.Form = None,
    language: options.LanguageOption = Language.EN,
    document_sentences: options.DocumentSentences = None,
    changes: options.Changes = None,
    restart: options.Restart = False,
    device: options.Device = "cpu",
    as_json: options.Json = False,
) -> None:
    """Fine-tune a model on the text of a domain, and report perplexity before and after.

    The model also learns new words of the domain. A model without an LM head gets a new one.
    To resume after an interruption, rerun the command.

    For example:

        elmore finetune abstracts.txt --out acl/

        elmore finetune abstracts.txt --model run/model --out acl/

        elmore finetune train.txt --heldout-text dev.txt --out acl/

        elmore embed abstracts.txt --model acl/model --out vectors.h5
    """
    from elmore.lm.finetune import finetune_model  # noqa: PLC0415  brings torch
    from elmore.lm.finetune_corpus import is_prepared, prepare_finetuning  # noqa: PLC0415

    preparation = PrepareSettings(
        form=options.choose_form(form, tokenized=tokenized),
        language=language,
        max_words=max_new_words,
        min_count=min_count,
        heldout=heldout,
        document_sentences=document_sentences,
    )
    with report_interrupt(restart=restart), show_prepare() as on_progress:
        settings, corpus = prepare_finetuning(
            text if is_prepared(text) else options.find_sources(text),
            out,
            model=model,
            preparation=preparation,
            heldout_text=options.find_sources(heldout_text or []),
            epochs=epochs,
            changes=changes or [],
            restart=restart,
            device=device,
            on_progress=on_progress,
        )
    for note in corpus.about["notes"]:
        print(f"note: {note}", file=sys.stderr)
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


def _print_report(report: "FinetuneReport", *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(report.to_json()))
        return
    print_run_report(report.run, as_json=False)
    how = "in the new vocabulary" if report.before is None else "added to the vocabulary"
    print(f"  words {how}: {report.num_new_words:,}")
    for name, before, after in (
        ("with the new vocabulary", report.before, report.after),
        ("with the old vocabulary", report.before_shared, report.after_shared),
    ):
        if before is not None and after is not None:
            print(
                f"  held-out perplexity {name}: {before.perplexity:.2f} before, "
                f"{after.perplexity:.2f} after"
            )
