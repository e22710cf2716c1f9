"""The weights of a biLM by name, and a check that all of them are used."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmore import ElmoModel, ElmoreError


class Weights:
    """The weights of a model; each is converted when it is taken."""

    def __init__(self, model: ElmoModel) -> None:
        self._tensors: dict[str, Any] = model.bilm.state_dict()
        self._unused = set(self._tensors)

    def take(self, name: str) -> NDArray[np.float32]:
        """Return a weight."""
        if name not in self._tensors:
            raise ElmoreError(f"this model has no weight {name!r}; {_REMEDY}")
        self._unused.discard(name)
        return self._tensors[name].detach().cpu().float().numpy()

    def check_all_used(self) -> None:
        """Raise an error if the network has a part that was not exported."""
        if self._unused:
            raise ElmoreError(f"the weight {min(self._unused)!r} cannot be exported; {_REMEDY}")


_REMEDY = "only biLMs with elmore's own token encoder and LSTMs can be exported to ONNX"
