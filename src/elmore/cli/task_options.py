"""Options that the commands for tasks share."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from elmore.tasks.kinds.names import list_names

OLD_MODEL_FLAG, OLD_SETTINGS_FLAG = "--elmo", "--config"


def note_old_model_flag(model: str | None) -> str | None:
    """Print what the option is called now."""
    _note_old_flag(OLD_MODEL_FLAG, "--model")
    return model


def note_old_settings_flag(settings: Path | None) -> Path | None:
    """Print what the option is called now."""
    _note_old_flag(OLD_SETTINGS_FLAG, "--settings")
    return settings


def _note_old_flag(old: str, new: str) -> None:
    if any(argument.split("=")[0] == old for argument in sys.argv):
        print(f"note: {old} is now called {new}", file=sys.stderr)


TaskName = Annotated[
    str,
    typer.Argument(help=f"One of {list_names()}. For your own labels: texts or pairs."),
]
Data = Annotated[
    Path | None,
    typer.Option(help="Folder with train, dev and optionally test files, recognized by file name."),
]
Train = Annotated[Path | None, typer.Option(help="Training data: a file or a folder of files.")]
Dev = Annotated[Path | None, typer.Option(help="Dev data, used for early stopping.")]
Test = Annotated[Path | None, typer.Option(help="Test data, scored at the end.")]
Elmo = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        OLD_MODEL_FLAG,
        callback=note_old_model_flag,
        help="The biLM: model folder, bilm-tf weights (.hdf5) or TensorFlow checkpoint, "
        "ELMoForManyLangs folder, archive of one of them or Hugging Face hub id. Default: the "
        "English model that comes with elmore.",
    ),
]
Words = Annotated[
    Path | None,
    typer.Option(
        help="Word vectors: a text file like GloVe's, or .npz with arrays words and vectors. "
        "Default: learned with the task. Short for --set words.file=FILE."
    ),
]
Settings = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        OLD_SETTINGS_FLAG,
        callback=note_old_settings_flag,
        help="TOML file with settings. Default: the task's own settings.",
    ),
]
Accept = Annotated[
    bool,
    typer.Option(
        "--accept",
        help="Train even if the data looks wrong: typos in labels, swapped columns, missing blank "
        "lines, a script that the biLM was not trained on.",
    ),
]
