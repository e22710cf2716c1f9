"""Where an embedder's model came from: pickles store this instead of the weights."""

from dataclasses import dataclass

import torch

from elmore.errors import ConfigError, ModelError
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.loading import read_source
from elmore.weights.model_source import ModelSource


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """The files of a model, and the fingerprint of the weights in them."""

    source: ModelSource
    fingerprint: str

    def read_again(self) -> ElmoModel:
        """Load the model again, and check that it is still the same."""
        try:
            model = read_source(self.source)
        except ModelError as error:
            raise ModelError(
                f"this embedder was loaded from {self.source}, but its model cannot be loaded "
                f"again: {error}"
            ) from error
        if model.fingerprint() != self.fingerprint:
            raise ModelError(
                f"the model at {self.source} has changed since this embedder was pickled; load it "
                "again with elmore.load, or restore the earlier model"
            )
        return model


def move_model(model: ElmoModel, device: str | torch.device) -> ElmoModel:
    """Move a model to a device that `read_device` has checked."""
    try:
        return model.to(device)
    except RuntimeError as error:  # out of memory
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"cannot move the model to device {str(device)!r} ({reason:.200}); use cpu"
        ) from error
