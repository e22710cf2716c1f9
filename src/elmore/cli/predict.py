"""`elmore predict`: the predictions of a trained task for a text."""

import io
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from elmore.cli import options, task_options
from elmore.cli.display import report_interrupt, show_status
from elmore.errors import ConfigError, DataError
from elmore.wording import count

if TYPE_CHECKING:
    from elmore.tasks.fit.model import TaskModel

# What a shell reports for a program that SIGPIPE ended; Windows has no such signal.
PIPE_CLOSED = 128 + 13


class PredictionForm(StrEnum):
    """The format of predictions."""

    JSON = "json"
    """One object per line."""
    COLUMNS = "columns"
    """One token and its tag per line, a blank line after each sentence; for tasks that tag."""
    ANSWERS = "answers"
    """One object of ids and answers, for SQuAD's evaluation script."""


def predict(
    task: Annotated[Path, typer.Argument(help="Folder of a task trained with `elmore fit`.")],
    text: Annotated[Path, typer.Argument(help="A plain text, or data in the format of the task.")],
    out: Annotated[
        Path | None,
        options.make_out_option("Output file. Default: standard output."),
    ] = None,
    form: Annotated[
        PredictionForm,
        typer.Option(
            help="Output format. columns: tasks that tag. answers: questions, as for SQuAD."
        ),
    ] = (PredictionForm.JSON),
    elmo: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            task_options.OLD_MODEL_FLAG,
            callback=task_options.note_old_model_flag,
            help="The biLM, if it has moved since training: its path or Hugging Face hub id.",
        ),
    ] = None,
    score: Annotated[
        bool,
        typer.Option("--score", help="TEXT contains gold labels: score the predictions."),
    ] = False,
    device: options.Device = "cpu",
) -> None:
    """Predict labels for a text with a trained task.

    For example:

        elmore predict entities/ letter.txt

        elmore predict entities/ eng.testb --score --form columns --out found.txt
    """
    if not text.exists():  # before a model is loaded
        raise DataError(f"there is no file {text}; check the path")
    from elmore.tasks.fit.folder import load_task_model  # noqa: PLC0415  brings torch

    model = load_task_model(task, elmo=elmo, device=device)
    read = model.task.read if score else model.task.read_unlabeled
    pairs: list[tuple[Any, Any]] = []
    num_tokens, began = 0, time.perf_counter()
    with (
        report_interrupt(hint="nothing was written" if out else "the rest was not predicted"),
        show_status("predicting") as on_progress,
        _open(out) as file,
    ):
        writer = _Writer(form, model, file)
        for example, prediction in model.predict(read(text)):
            num_tokens += model.task.count_tokens(example)
            on_progress(f"predicting, {count(num_tokens, 'token')}")
            writer.write(example, prediction)
            if score:
                pairs.append((example, prediction))
        writer.end()
    seconds = time.perf_counter() - began
    speed = f"{num_tokens / seconds:,.0f} tokens/s"
    print(f"{count(num_tokens, 'token')}, {speed}", file=sys.stderr)
    if score:
        scores = model.task.score([pair[0] for pair in pairs], [pair[1] for pair in pairs])
        shown = ", ".join(f"{name} {value:.2f}" for name, value in scores.items())
        print(shown, file=sys.stderr if out is None else sys.stdout)


class _Writer:
    """Writes predictions in one of the formats."""

    def __init__(self, form: PredictionForm, model: "TaskModel", file: TextIO) -> None:
        self.form = form
        self.model = model
        self.file = file
        self._answers: dict[str, str] = {}

    def write(self, example: Any, prediction: Any) -> None:
        content = self.model.task.to_json(example, prediction)
        match self.form:
            case PredictionForm.JSON:
                self.file.write(json.dumps(content, ensure_ascii=False) + "\n")
            case PredictionForm.COLUMNS:
                if "tags" not in content:
                    self._refuse("columns are for tasks that tag")
                lines = zip(content["tokens"], content["tags"], strict=True)
                self.file.write("".join(f"{token}\t{tag}\n" for token, tag in lines) + "\n")
            case PredictionForm.ANSWERS:
                if "answer" not in content:
                    self._refuse("answers are for the task questions")
                self._answers[content["id"]] = content["answer"]

    def end(self) -> None:
        if self.form is PredictionForm.ANSWERS:
            self.file.write(json.dumps(self._answers, ensure_ascii=False) + "\n")

    def _refuse(self, reason: str) -> None:
        raise ConfigError(
            f"--form {self.form} does not fit {self.model.task.name}: {reason}; choose json"
        )


@contextmanager
def _open(out: Path | None) -> Iterator[TextIO]:
    if out is None:
        with _printing() as file:
            yield file
        return
    from elmore.files.atomic import replace_file  # noqa: PLC0415

    # JSON may have lone surrogates but UTF-8 may not; they are written as JSON escapes.
    with (
        replace_file(out) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace") as file,
    ):
        yield file


@contextmanager
def _printing() -> Iterator[TextIO]:
    """Yield standard output; exit silently when the reader is gone, as with `| head`."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        # Otherwise Python would flush the rest at exit and print an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(PIPE_CLOSED) from None
