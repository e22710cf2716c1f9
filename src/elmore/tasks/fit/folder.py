"""Save a trained task network as a folder, and load it: settings, words, labels and weights.

The files are settings.json, words.txt and weights.safetensors (no pickles). A biLM that was trained
with the task is saved in elmo/, one that was fine-tuned on the task's text in domain/. Any other
biLM is stored as its name and hash, because a different one would give different vectors.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from elmore.config import MAX_DIM
from elmore.embed.embedder import Embedder
from elmore.embed.layer_source import LayerSource, LiveLayers
from elmore.errors import DataError, ElmoreError, ModelError
from elmore.files.atomic import replace_file, replace_json
from elmore.files.untrusted import read_json
from elmore.jobs.checkpoint import load_into, save_tensors
from elmore.jobs.device import read_device
from elmore.settings import check_range
from elmore.tasks.fit.model import TaskModel, find_shapes, make_task
from elmore.tasks.fit.settings import ElmoPlace, ElmoTraining, FitSettings, read_settings
from elmore.tasks.inputs.token_batch import NUM_SPECIAL_ROWS
from elmore.tasks.inputs.trained_layers import TrainedLayers
from elmore.tasks.inputs.word_table import ChosenWords
from elmore.tasks.task import Labels, Task
from elmore.text.vocabulary import write_entries
from elmore.weights.entry_files import read_list
from elmore.weights.hub import HUB_ID
from elmore.weights.loading import load_model
from elmore.weights.model_folder import read_tensors

FORMAT = 1
SETTINGS, WORDS, WEIGHTS = "settings.json", "words.txt", "weights.safetensors"
ELMO, DOMAIN = "elmo", "domain"

# What Python and torch raise if settings or tensors are not those of a task.
_WRONG_CONTENT = (KeyError, TypeError, ValueError, IndexError, RuntimeError)


@dataclass(frozen=True, kw_only=True)
class ElmoSource:
    """The biLM that a task network was trained with."""

    name: str | None  # a path or hub id; None for the model that comes with elmore
    fingerprint: str

    def to_json(self, folder: Path) -> dict[str, Any]:
        """Return the source for JSON; the path of a biLM inside the folder is relative."""
        is_inside = self.name is not None and Path(self.name).is_relative_to(folder)
        name = Path(self.name or "").relative_to(folder).as_posix() if is_inside else self.name
        return {"name": name, "is_inside": is_inside, "fingerprint": self.fingerprint}


def save_task_model(model: TaskModel, folder: Path, *, elmo: ElmoSource | None) -> None:
    """Write a folder that `load_task_model` reads; it is complete once settings.json is written."""
    with replace_file(folder / WORDS) as temporary:
        write_entries(temporary, model.words.words)
    with replace_file(folder / WEIGHTS) as temporary:
        save_tensors(temporary, model.network.state_dict())
    if isinstance(model.layers, TrainedLayers):
        model.layers.elmo.save_pretrained(folder / ELMO)
    replace_json(
        folder / SETTINGS,
        {
            "format": FORMAT,
            "settings": model.settings.to_json(),
            "labels": list(model.labels),
            "num_trained_words": model.words.num_trained,
            "words_dim": int(model.words.vectors.shape[1]),
            "elmo": None if elmo is None else elmo.to_json(folder),
        },
    )


def load_task_model(
    folder: str | Path, *, elmo: str | None = None, device: str = "cpu"
) -> TaskModel:
    """Load a trained task network; `elmo` is the path of its biLM, if that has moved.

    The hub is used only if `elmo` is a hub id, never because of what is in the folder.
    """
    folder = Path(folder)
    checked_device = read_device(device)
    if not (folder / SETTINGS).is_file():
        raise ModelError(f"{folder} has no trained task (no {SETTINGS}); {_suggest(folder)}")
    content = read_json(folder / SETTINGS)
    if content.get("format") != FORMAT:
        raise ModelError(f"{folder} has format {content.get('format')!r:.20}; update elmore")
    with _explaining_damage(folder):
        if not isinstance(content["settings"], dict):
            raise DataError(f"its settings are {content['settings']!r:.60}, not an object")
        settings = read_settings(content["settings"])
        labels = _read_labels(content["labels"], task=make_task(settings))
        words = _read_words(folder, content)
    layers = _find_layers(settings, content.get("elmo"), folder, elmo=elmo, device=checked_device)
    with _explaining_damage(folder):
        shapes = find_shapes(settings, labels=labels, words=words, layers=layers)
        weights = read_tensors(folder / WEIGHTS, shapes, settings=SETTINGS)
        # The weights exist and have these shapes, so memory can be allocated.
        words = replace(words, vectors=torch.zeros(words.vectors.shape))
        model = TaskModel(
            settings, labels=labels, words=words, layers=layers, device=checked_device
        )
        load_into(model.network, weights)
    model.network.eval()
    return model


@contextmanager
def _explaining_damage(folder: Path) -> Iterator[None]:
    try:
        yield
    except (ElmoreError, *_WRONG_CONTENT) as error:
        reason = " ".join(str(error).split())  # torch's have several lines
        # Without the remedy of our own errors, which does not apply here.
        reason = reason.rpartition("; ")[0] or reason
        raise ModelError(
            f"{folder} is damaged or is not a trained task ({reason:.300}); copy it again, or "
            "train it again"
        ) from error


def _read_labels(values: Any, *, task: Task) -> Labels:
    if not isinstance(values, list) or not all(isinstance(label, str) for label in values):
        raise DataError(f"the labels are {values!r:.60}, not a list of strings")
    for label, number in Counter(values).items():
        if number > 1:
            raise DataError(f"the label {label!r:.60} is listed twice")
    if not values and task.predicts_labels:
        raise DataError(f"it has no labels, but {task.name} need some")
    return tuple(values)


def _read_words(folder: Path, content: dict[str, Any]) -> ChosenWords:
    """Read the words; no memory is allocated for their vectors yet."""
    words = read_list(folder / WORDS)
    num_rows = NUM_SPECIAL_ROWS + len(words)
    check_range("words_dim", content["words_dim"], 0, MAX_DIM)
    num_trained = content["num_trained_words"]
    check_range("num_trained_words", num_trained, NUM_SPECIAL_ROWS, num_rows)
    vectors = torch.empty(num_rows, content["words_dim"], device="meta")
    return ChosenWords(words=words, vectors=vectors, num_trained=num_trained)


def _suggest(folder: Path) -> str:
    if (folder / "plan.json").is_file():
        return "its training is not finished; rerun the same elmore fit command to resume it"
    return "train one with elmore fit"


def _find_layers(
    settings: FitSettings, source: Any, folder: Path, *, elmo: str | None, device: torch.device
) -> LayerSource | None:
    if settings.elmo.where is ElmoPlace.NONE or source is None:
        return None
    if settings.elmo.training is ElmoTraining.TASK:
        return TrainedLayers(load_model(folder / ELMO).eval())  # `TaskModel` moves it to the device
    with _explaining_damage(folder):
        name, fingerprint = _read_source(source, folder)
    try:
        loaded = load_model(elmo or name)
    except ModelError as error:
        if elmo is None and name is not None and HUB_ID.fullmatch(str(name)):
            raise ModelError(
                f"{folder} was trained with the biLM {str(name)!r}, which is not a folder here; "
                f"to load it from the Hugging Face hub, add --model {name}"
            ) from error
        raise ModelError(f"the biLM of {folder} is missing: {error} (--model)") from error
    if loaded.fingerprint() != fingerprint:
        raise ModelError(
            f"the biLM {elmo or name or 'of elmore'} is not the one that {folder} was trained "
            "with; give that one (--model), or train again"
        )
    return LiveLayers(Embedder(loaded.to(device)), settings.elmo.precision)


def _read_source(source: Any, folder: Path) -> tuple[Path | None, str]:
    """Return the path of the biLM and its hash; a `Path` is never looked up on the hub."""
    name = source["name"]
    if name is not None and not isinstance(name, str):
        raise DataError(f"the name of the biLM is {name!r:.60}, not a string")
    if name is None:
        return None, source["fingerprint"]
    return (folder / name if source["is_inside"] else Path(name)), source["fingerprint"]
