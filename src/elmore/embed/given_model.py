"""The model of a call: a path, a hub id or an embedder."""

import os
from pathlib import Path

from elmore.embed.embedder import Embedder
from elmore.errors import ConfigError
from elmore.jobs.device import read_device
from elmore.lm.language_model import LanguageModel


def find_given_model(
    model: str | Path | Embedder | None, *, none_is_shipped: bool = True
) -> str | None:
    """Return the path or hub id of a model; for an embedder, the path it was loaded from.

    If `none_is_shipped`, an embedder of the model that comes with elmore gives None, which is valid
    in any installation.
    """
    if model is None:
        return None
    if isinstance(model, str | os.PathLike):
        return os.fspath(model)
    if isinstance(model, Embedder):
        return None if none_is_shipped and model.is_shipped else model.find_path()
    raise ConfigError(f"model is {model!r:.60}; give a path, a hub id or what elmore.load returns")


def open_language_model(model: str | Path | Embedder | None, *, device: str) -> LanguageModel:
    """Load a model with its LM head, or take that of an embedder."""
    chosen = read_device(device)
    if not isinstance(model, Embedder):
        return LanguageModel.load(model).to(chosen)
    if device != "cpu" and chosen != model.device:
        raise ConfigError(
            f"device is {device!r:.60}, but the embedder is on {model.device}; move it with "
            "to(device), or leave device out"
        )
    return model.language_model
