"""Where an embedder's model came from, so that its pickle can be small and checked."""

from dataclasses import dataclass

import torch

from elmore.errors import ConfigError, ModelError
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.loading import read_source
from elmore.weights.model_source import ModelSource


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """The files of a model, and the fingerprint of the weights that they held."""

    source: ModelSource
    fingerprint: str

    def read_again(self) -> ElmoModel:
        """Load the model again, and refuse another in its place."""
        try:
            model = read_source(self.source)
        except ModelError as error:
            raise ModelError(
                f"this embedder was loaded from {self.source}, and its model cannot be loaded "
                f"again: {error}"
            ) from error
        if model.fingerprint() != self.fingerprint:
            raise ModelError(
                f"the model at {self.source} has changed since this embedder was pickled; load it "
                "again with elmore.load, or put the earlier model back"
            )
        return model


def move_model(model: ElmoModel, device: str | torch.device) -> ElmoModel:
    """Put a model on a device that was checked."""
    try:
        return model.to(device)
    except RuntimeError as error:  # its memory is full
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"the model cannot be put on device {str(device)!r} ({reason:.200}); use cpu"
        ) from error
