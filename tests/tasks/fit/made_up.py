"""Trainings that take a second: tagged sentences, small settings, and an observer."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from elmore.embed.layer_cache import LayerCache
from elmore.settings import apply_change
from elmore.tasks.data.parts import find_parts
from elmore.tasks.fit.elmo import ElmoChoice
from elmore.tasks.fit.fit import FitReport, fit_task
from elmore.tasks.fit.settings import FitSettings, read_settings
from tests import tiny

NUM_TRAIN = 20


def make_sentences(number: int, *, seed: int) -> list[list[tuple[str, str]]]:
    """Tokens whose tags follow from their spelling and from the token before."""
    chooser = np.random.default_rng(seed)
    sentences = []
    for _ in range(number):
        words = chooser.choice(["a", "bad", "Cafe", "abba", "cab", "dada"], chooser.integers(1, 7))
        before = ["a", *words[:-1]]
        tags = [
            f"{word[-1].upper()}{'1' if last[0] == 'a' else '2'}"
            for word, last in zip(words, before, strict=True)
        ]
        sentences.append(list(zip(words.tolist(), tags, strict=True)))
    return sentences


def write_data(folder: Path, *, num_train: int = NUM_TRAIN) -> Path:
    """Write files for train, dev and test."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (part, number) in enumerate({"train": num_train, "dev": 8, "test": 5}.items()):
        blocks = (
            "".join(f"{token}\t{tag}\n" for token, tag in sentence)
            for sentence in make_sentences(number, seed=seed)
        )
        (folder / f"{part}.txt").write_text("\n".join(blocks))
    return folder


def make_settings(*changes: str) -> FitSettings:
    """A small tagger without ELMo, trained for three epochs, changed as on the command line."""
    values: dict[str, Any] = {
        "kind": "tags",
        "task": {"column": "2", "hidden_dim": 5, "dropout": 0.2},
        "words": {"dim": 4, "min_count": 1, "dropout": 0.2},
        "characters": {"num_filters": 3, "embedding_dim": 4, "max_chars": 8},
        "elmo": {"where": "none", "penalty": 0.1},
        "training": {
            **{"batch_size": 4, "learning_rate": 0.02, "max_epochs": 3, "min_epoch_steps": 1},
        },
    }
    for change in changes:
        apply_change(values, change)
    return read_settings(values)


class Place:
    """A folder with data, a biLM and a cache, where networks are trained."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = write_data(folder / "data")
        self.model = folder / "model"
        tiny.model(scale=0.4).save_pretrained(self.model)

    def fit(self, run: str, *changes: str, elmo: str | None = None, **how: Any) -> FitReport:
        choice = ElmoChoice(name=elmo or str(self.model), cache=LayerCache(self.folder / "cache"))
        return fit_task(
            make_settings(*changes),
            find_parts(how.pop("data_folder", self.data)),
            self.folder / run,
            elmo=choice,
            **how,
        )

    def list_files(self, run: str) -> list[str]:
        folder = self.folder / run
        return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


class Watcher:
    """Records what it is notified of; requests a stop after the step `stop_after`."""

    def __init__(self, *, stop_after: int | None = None) -> None:
        self.stop_after = stop_after
        self.stages: list[str] = []
        self.messages: list[str] = []
        self.steps: list[int] = []
        self.epochs: list[int] = []

    def on_stage(self, text: str) -> None:
        self.stages.append(text)

    def on_message(self, text: str) -> None:
        self.messages.append(text)

    def on_step(self, progress, *, num_steps, loss) -> None:
        self.steps.append(progress.step)
        if progress.step == self.stop_after:
            os.kill(os.getpid(), signal.SIGTERM)

    def on_epoch(self, point, *, is_best) -> None:
        self.epochs.append(point.epoch)


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    """All weights that a training left, those of a biLM that learned too."""
    paths = [folder / "weights.safetensors", folder / "elmo" / "model.safetensors"]
    return {
        f"{path.parent.name}.{name}": tensor
        for path in paths
        if path.exists()
        for name, tensor in load_file(path).items()
    }


def without_times(report: FitReport) -> dict[str, Any]:
    values = report.to_json()
    del values["seconds"]
    for point in values["curve"]:
        del point["seconds"]
    return values


def are_alike(folder: Path, other: Path) -> bool:
    """Whether two training runs ended with the same weights, to the bit."""
    # The names of folders are part of the names of weights.
    found = {name.partition(".")[2]: t for name, t in weights_of(folder).items()}
    wanted = {name.partition(".")[2]: t for name, t in weights_of(other).items()}
    assert found.keys() == wanted.keys()
    return all(torch.equal(found[name], wanted[name]) for name in wanted)
