"""`elmore compare`: measure what ELMo vectors are worth for a task."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmore.cli import options, task_options
from elmore.cli.display import report_interrupt
from elmore.cli.fit_display import FitDisplay

if TYPE_CHECKING:
    from elmore.comparison.compare import PlannedRun


def compare(
    task: task_options.TaskName,
    data: task_options.Data = None,
    out: Annotated[
        Path | None,
        options.make_out_option("Folder for the comparison. Default: compare-TASK."),
    ] = None,
    train: task_options.Train = None,
    dev: task_options.Dev = None,
    test: task_options.Test = None,
    elmo: task_options.Elmo = None,
    words: task_options.Words = None,
    variants: Annotated[
        str,
        typer.Option(
            help="What to compare, separated by commas: without, input, output, both, top "
            "(only the top layer), average (of the layers), finetuned (with the "
            "task), domain (first fine-tuned on its text)."
        ),
    ] = "without,input",
    shares: Annotated[
        str, typer.Option(help="Percentages of the training data, separated by commas.")
    ] = "100",
    seeds: Annotated[
        int, typer.Option(min=1, help="Number of runs of each variant, with different seeds.")
    ] = 3,
    settings_path: task_options.Settings = None,
    changes: options.Changes = None,
    restart: options.Restart = False,
    accept: task_options.Accept = False,
    device: options.Device = "cpu",
    as_json: options.Json = False,
) -> None:
    """Train a task with and without ELMo, over several seeds, and report the difference.

    The folder gets report.html (a table, learning curves, the gain by amount of data, the learned
    layer weights) and report.json. To resume after an interruption, rerun the command.

    For example:

        elmore compare sentiment --data sst/ --words glove.6B.50d.txt

        elmore compare ner --data conll2003/ --variants without,input,top --shares 1,10,100
    """
    from elmore.comparison.compare_task import compare_task, read_shares  # noqa: PLC0415
    from elmore.comparison.report_folder import PAGE, RESULTS  # noqa: PLC0415
    from elmore.comparison.text_table import write_table  # noqa: PLC0415
    from elmore.tasks.fit.model import make_task  # noqa: PLC0415
    from elmore.tasks.fit.named_task import open_task  # noqa: PLC0415

    settings, parts = open_task(
        task,
        data=data,
        train=train,
        dev=dev,
        test=test,
        words=words,
        config=settings_path,
        changes=changes or [],
    )
    folder = out or Path(f"compare-{settings.kind}")
    display = FitDisplay(score_name=make_task(settings).main_score)
    with report_interrupt(restart=restart), display.shown():
        comparison = compare_task(
            settings,
            parts,
            folder,
            variants=[name.strip() for name in variants.split(",") if name.strip()],
            shares=read_shares(shares.split(",")),
            num_seeds=seeds,
            command=_command(),
            model=elmo,
            observer=display,
            on_run=_announce,
            restart=restart,
            accept=accept,
            device=device,
        )
    if as_json:
        print((folder / RESULTS).read_text(encoding="utf-8"), end="")
    else:
        print(write_table(comparison))
        print(f"{folder / PAGE} has the plots")


def _announce(number: int, num_runs: int, run: "PlannedRun", was_done: bool) -> None:
    note = ", already done" if was_done else ""
    print(f"run {number} of {num_runs}: {run.name}{note}", file=sys.stderr)


def _command() -> str:
    # With --restart, rerunning the command would delete the results.
    return shlex.join(["elmore", *(word for word in sys.argv[1:] if word != "--restart")])
