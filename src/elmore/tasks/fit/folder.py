"""A trained task network as a folder: settings, words, labels and weights; no pickles.

settings.json, words.txt, weights.safetensors; elmo/ if the biLM learned with the task, domain/ if
it read the task's text before. Any other biLM is named only, and its hash kept: one that is not the
same would give other vectors.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from elmore.atomic_file import replace_file
from elmore.embed.embedder import Embedder
from elmore.errors import ConfigError, DataError, ModelError
from elmore.pretrain.checkpoint import load_into, save_tensors
from elmore.pretrain.pretrain import read_device
from elmore.tasks.fit.model import TaskModel
from elmore.tasks.fit.settings import ElmoPlace, ElmoTraining, FitSettings, read_settings
from elmore.tasks.inputs.layer_source import LayerSource, LiveLayers
from elmore.tasks.inputs.trained_layers import TrainedLayers
from elmore.tasks.inputs.word_table import ChosenWords
from elmore.text.vocabulary import read_entries, write_entries
from elmore.weights.json_file import read_json, write_json
from elmore.weights.loading import load_model

FORMAT = 1
SETTINGS, WORDS, WEIGHTS = "settings.json", "words.txt", "weights.safetensors"
ELMO, DOMAIN = "elmo", "domain"

# What Python and torch raise where settings or tensors are not those of a task.
_WRONG_CONTENT = (KeyError, TypeError, ValueError, IndexError, RuntimeError)


@dataclass(frozen=True, kw_only=True)
class ElmoSource:
    """The biLM that a task network was trained with."""

    name: str | None  # a path or hub id; None is the model that comes with elmore
    fingerprint: str

    def to_json(self, folder: Path) -> dict[str, Any]:
        """Return what is kept; a biLM inside the folder may move with it."""
        is_inside = self.name is not None and Path(self.name).is_relative_to(folder)
        name = Path(self.name or "").relative_to(folder).as_posix() if is_inside else self.name
        return {"name": name, "is_inside": is_inside, "fingerprint": self.fingerprint}


def save_task_model(model: TaskModel, folder: Path, *, elmo: ElmoSource | None) -> None:
    """Write a folder that `load_task_model` reads; settings come last, and make it whole."""
    with replace_file(folder / WORDS) as temporary:
        write_entries(temporary, model.words.words)
    with replace_file(folder / WEIGHTS) as temporary:
        save_tensors(temporary, model.network.state_dict())
    if isinstance(model.layers, TrainedLayers):
        model.layers.elmo.save_pretrained(folder / ELMO)
    with replace_file(folder / SETTINGS) as temporary:
        write_json(
            temporary,
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
    """Load a trained task network; `elmo` says where its biLM is now, if it has moved."""
    folder = Path(folder)
    place = read_device(device)
    if not (folder / SETTINGS).is_file():
        raise ModelError(f"{folder} has no trained task (no {SETTINGS}); {_suggest(folder)}")
    content = read_json(folder / SETTINGS)
    try:
        if content["format"] != FORMAT:
            raise ModelError(f"{folder} has format {content['format']!r:.20}; update elmore")
        settings = read_settings(content["settings"])
        labels = tuple(map(str, content["labels"]))
        words = read_entries(folder / WORDS)
        vectors = torch.zeros(2 + len(words), content["words_dim"])
        chosen = ChosenWords(words=words, vectors=vectors, num_trained=content["num_trained_words"])
        layers = _find_layers(settings, content["elmo"], folder, elmo=elmo, device=place)
        model = TaskModel(settings, labels=labels, words=chosen, layers=layers, device=place)
        load_into(model.network, load_file(folder / WEIGHTS))
    except (ConfigError, DataError, SafetensorError, OSError, *_WRONG_CONTENT) as error:
        reason = " ".join(str(error).split())  # torch's are several lines
        raise ModelError(
            f"{folder} is damaged or no trained task ({reason:.200}); fit it again"
        ) from error
    model.network.eval()
    return model


def _suggest(folder: Path) -> str:
    if (folder / "plan.json").is_file():
        return "its training has not ended, so run the same elmore fit again to go on"
    return "fit one with elmore fit"


def _find_layers(
    settings: FitSettings,
    source: dict[str, Any] | None,
    folder: Path,
    *,
    elmo: str | None,
    device: torch.device,
) -> LayerSource | None:
    if settings.elmo.where is ElmoPlace.NONE or source is None:
        return None
    if settings.elmo.training is ElmoTraining.TASK:
        return TrainedLayers(load_model(folder / ELMO).eval())  # `TaskModel` moves it
    name = elmo or (str(folder / source["name"]) if source["is_inside"] else source["name"])
    try:
        loaded = load_model(name)
    except ModelError as error:
        raise ModelError(f"the biLM of {folder} is missing: {error} (--elmo)") from error
    if loaded.fingerprint() != source["fingerprint"]:
        raise ModelError(
            f"the biLM {name or 'of elmore'} is not the one that {folder} was fitted with; name "
            "that one (--elmo), or fit again"
        )
    return LiveLayers(Embedder(loaded.to(device)), settings.elmo.precision)
