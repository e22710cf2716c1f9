"""Options that the commands for tasks share."""

import sys
from pathlib import Path
from typing import Annotated

import typer

OLD_MODEL_FLAG = "--elmo"


def note_old_flag(model: str | None) -> str | None:
    """Say what the flag is called now, to those whose scripts use the old name."""
    if model is not None and any(flag.split("=")[0] == OLD_MODEL_FLAG for flag in sys.argv):
        print(f"note: {OLD_MODEL_FLAG} is now called --model", file=sys.stderr)
    return model


TaskName = Annotated[
    str,
    typer.Argument(
        help="entities (ner), tags (pos), sentiment, entailment, roles (srl), coreference, "
        "questions (qa); texts or pairs for your own."
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        help="Folder with train, dev and optionally test files, recognized by their names."
    ),
]
Train = Annotated[Path | None, typer.Option(help="Training data: a file, or a folder of files.")]
Dev = Annotated[Path | None, typer.Option(help="Dev data, used for early stopping.")]
Test = Annotated[Path | None, typer.Option(help="Test data, scored at the end.")]
Elmo = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        OLD_MODEL_FLAG,
        callback=note_old_flag,
        help="The biLM: model folder, bilm-tf weights, ELMoForManyLangs folder or hub id. "
        "Without it: the model that comes with elmore.",
    ),
]
Words = Annotated[
    Path | None,
    typer.Option(
        help="Word vectors: GloVe's text, or .npz with the arrays words and vectors. Without "
        "them, they are learned. Short for --set words.file=FILE."
    ),
]
Config = Annotated[Path | None, typer.Option(help="Settings as TOML. Without it: the task's own.")]
Accept = Annotated[
    bool,
    typer.Option(
        "--accept",
        help="Train even if the data looks wrong: typos among labels, swapped columns, lost blank "
        "lines, another script than the biLM's.",
    ),
]
