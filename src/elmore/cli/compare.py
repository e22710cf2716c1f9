"""`elmore compare`: what ELMo vectors are worth for a task, measured, in one page."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from elmore.cli import options, task_options
from elmore.cli.display import report_interrupt
from elmore.cli.fit_display import FitDisplay
from elmore.errors import ConfigError
from elmore.wording import count


def compare(
    task: task_options.TaskName,
    data: task_options.Data = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            callback=options.check_out,
            help="Folder of the comparison. Without it: compare-TASK.",
        ),
    ] = None,
    train: task_options.Train = None,
    dev: task_options.Dev = None,
    test: task_options.Test = None,
    elmo: task_options.Elmo = None,
    words: task_options.Words = None,
    variants: Annotated[
        str,
        typer.Option(
            help="What to compare, with commas between: without, input, output, both, top (layer "
            "only), average (of layers), finetuned (with the task), domain (fine-tuned on its "
            "text first)."
        ),
    ] = "without,input",
    shares: Annotated[
        str, typer.Option(help="Shares of the training data in percent, with commas between.")
    ] = "100",
    seeds: Annotated[int, typer.Option(min=1, help="How often each is trained.")] = 3,
    config: task_options.Config = None,
    changes: options.Changes = None,
    restart: options.Restart = False,
    accept: task_options.Accept = False,
    device: options.Device = "cpu",
    as_json: options.Json = False,
) -> None:
    """Train a task with and without ELMo, over several seeds, and report what that changes.

    The folder gets report.html (table, learning curves, gains by amount of data, the learned
    weights of layers) and report.json. To resume a comparison that was stopped, rerun the
    command.

    For example:

        elmore compare sentiment --data sst/ --words glove.6B.50d.txt

        elmore compare ner --data conll2003/ --variants without,input,top --shares 1,10,100
    """
    chosen = [name.strip() for name in variants.split(",") if name.strip()]
    percents = [_read_percent(text) for text in shares.split(",")]
    settings, parts = task_options.read_task(
        task,
        data=data,
        train=train,
        dev=dev,
        test=test,
        words=words,
        config=config,
        changes=changes or [],
    )
    from elmore.comparison.compare import (  # noqa: PLC0415  brings torch
        PlannedRun,
        plan_runs,
        run_comparison,
        summarize,
    )
    from elmore.comparison.report_folder import write_report  # noqa: PLC0415
    from elmore.comparison.text_table import write_table  # noqa: PLC0415
    from elmore.tasks.fit.elmo import ElmoChoice  # noqa: PLC0415
    from elmore.tasks.fit.model import make_task  # noqa: PLC0415
    from elmore.tasks.fit.plan import REPORT  # noqa: PLC0415
    from elmore.weights.loading import load_model  # noqa: PLC0415

    folder = out or Path(f"compare-{settings.kind}")
    runs = plan_runs(settings, variants=chosen, shares=percents, num_seeds=seeds)
    display = FitDisplay(score_name=make_task(settings).main_score)

    was_done: dict[str, bool] = {}

    def announce(number: int, run: PlannedRun) -> None:
        was_done[run.name] = not restart and (run.find_folder(folder) / REPORT).is_file()
        note = ", done before" if was_done[run.name] else ""
        print(f"training {number + 1} of {len(runs)}: {run.name}{note}", file=sys.stderr)

    model = load_model(elmo)
    about, fingerprint = model.config.about.name, model.fingerprint()
    del model
    finished = []
    with report_interrupt(restart=restart), display.shown():
        for pair in run_comparison(
            runs,
            parts,
            folder,
            elmo=ElmoChoice(name=elmo),
            observer=display,
            on_run=announce,
            restart=restart,
            accept=accept,
            device=device,
        ):
            finished.append(pair)
            # Plots take seconds: they are drawn again after a new training, and at the end.
            if not was_done[pair[0].name] or len(finished) == len(runs):
                comparison = summarize(finished, settings, elmo=about, fingerprint=fingerprint)
                state = _describe_state(len(finished), len(runs))
                page = write_report(comparison, folder, command=_command(), state=state)
    if as_json:
        print((folder / "report.json").read_text(encoding="utf-8"), end="")
    else:
        print(write_table(comparison))
        print(f"{page} has the plots")


def _describe_state(num_finished: int, num_runs: int) -> str | None:
    if num_finished == num_runs:
        return None
    return (
        f"{num_finished} of {count(num_runs, 'training run')} finished; if the comparison was "
        "stopped, rerun the command below to resume it."
    )


def _read_percent(text: str) -> float:
    try:
        percent = float(text)
    except ValueError:
        percent = 0.0
    if not 0 < percent <= 100:
        raise ConfigError(f"--shares has {text!r:.40}; give percents above 0 and up to 100")
    return percent / 100


def _command() -> str:
    # With --restart, rerunning the command would delete what it should resume.
    return shlex.join(["elmore", *(word for word in sys.argv[1:] if word != "--restart")])
