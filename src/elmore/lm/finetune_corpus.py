"""Prepare the text of a domain for fine-tuning: the model's own words, then those of the domain."""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from elmore.corpus.corpus import Corpus, open_corpus
from elmore.corpus.prepare import prepare_corpus
from elmore.corpus.progress import PrepareProgress
from elmore.corpus.settings import PrepareSettings
from elmore.errors import ConfigError, ElmoreError
from elmore.files.atomic import replace_file
from elmore.jobs.device import read_device
from elmore.lm.enough_text import check_enough_text
from elmore.lm.finetune import make_settings
from elmore.lm.run import RUN
from elmore.lm.settings import PretrainSettings
from elmore.lm.starting_point import StartingPoint, load_start
from elmore.settings import apply_change
from elmore.text.vocabulary import write_entries

CORPUS, WORDS = "corpus", "words.txt"

Source = str | Path | BinaryIO


def is_prepared(text: Sequence[Source]) -> bool:
    """Return whether the text is the folder of a prepared corpus."""
    if len(text) != 1 or not isinstance(text[0], str | Path):
        return False
    return (Path(text[0]) / "corpus.json").is_file()


def prepare_finetuning(
    text: Sequence[Source],
    folder: Path,
    *,
    model: str | Path | None,
    preparation: PrepareSettings,
    heldout_text: Sequence[Source] = (),
    epochs: float = 1.0,
    changes: Sequence[str] = (),
    restart: bool = False,
    device: str = "cpu",
    on_progress: Callable[[PrepareProgress], None] | None = None,
) -> tuple[PretrainSettings, Corpus]:
    """Check what can be checked, and return the settings of the run and its corpus.

    `text` is files or streams, which are prepared in `folder`, or the folder of one corpus.
    """
    values = _make_values(epochs, changes)
    RUN.check(folder)
    _check_folder(folder, model)
    read_device(device)
    start = load_start(model)
    settings = make_settings(start.elmo, values)
    if not is_prepared(text):
        corpus = _prepare(
            text,
            heldout_text,
            folder,
            start,
            preparation=preparation,
            window=settings.training.window,
            restart=restart,
            on_progress=on_progress,
        )
        return settings, corpus
    if heldout_text:
        raise ConfigError(
            f"{text[0]} is a prepared corpus with a held-out part of its own; leave out the "
            "held-out text, or give it to elmore prepare"
        )
    return settings, open_corpus(Path(str(text[0])))


def _make_values(epochs: float, changes: Sequence[str]) -> dict[str, Any]:
    """Return the settings that differ from those of pretraining."""
    values: dict[str, Any] = {
        "training": {"num_epochs": epochs, "rows": 32},
        "optimizer": {"learning_rate": 0.001},  # half of pretraining's
    }
    for change in changes:
        if change.startswith("model."):
            raise ConfigError(
                f"fine-tuning cannot change the architecture; leave out {change!r:.80}"
            )
        apply_change(values, change)
    return values


def _check_folder(folder: Path, model: str | Path | None) -> None:
    """Refuse the folder of the model, or of a run that is not fine-tuning."""
    if (
        model is not None
        and Path(model).exists()
        and Path(model).resolve().is_relative_to(folder.resolve())
    ):
        raise ConfigError(f"the model {model} is in {folder}; give another folder for the run")
    if (folder / "settings.json").exists() and not (folder / WORDS).exists():
        raise ConfigError(f"{folder} is the folder of another run; give a new one")


def _prepare(
    text: Sequence[Source],
    heldout_text: Sequence[Source],
    folder: Path,
    start: StartingPoint,
    *,
    preparation: PrepareSettings,
    window: int,
    restart: bool,
    on_progress: Callable[[PrepareProgress], None] | None,
) -> Corpus:
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError(
            "several processes would prepare the same text; prepare it first (elmore prepare TEXT "
            "--vocabulary MODEL/softmax_words.txt --extend --out corpus/) and give the corpus"
        )
    is_new = not folder.exists()
    release = RUN.lock(folder)  # a running job must keep its corpus
    try:
        words = (folder / WORDS).resolve()  # the same path, however the folder was named
        with replace_file(words) as temporary:
            write_entries(temporary, start.words)
        if start.words:
            preparation = replace(preparation, vocabulary=words, extends=True)
        corpus = prepare_corpus(
            text,
            folder / CORPUS,
            settings=preparation,
            heldout_sources=heldout_text,
            restart=restart,
            on_progress=on_progress,
        )
        check_enough_text(corpus, window=window)
    except ElmoreError:
        if is_new:
            shutil.rmtree(folder)
        raise
    finally:
        release()
    return corpus
