"""Which layers a vector is made of: all of them, one, their average, or a weighted sum.

Shapes: L layers, N tokens, D one layer's vector.
"""

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmore.errors import ConfigError
from elmore.model.scalar_mix import ScalarMix

ALL, AVERAGE, TOP = "all", "average", "top"

Layers = str | int | np.integer[Any] | ScalarMix


class LayerChoice:
    """Turn (L, N, D) into what the user asked for: (N, D), or (L, N, D) for all layers."""

    def __init__(self, layers: Layers, *, num_layers: int) -> None:
        self.mix: ScalarMix | None = None
        self.layer: int | None = None
        self.name = ""
        if isinstance(layers, ScalarMix):
            self.mix = copy.deepcopy(layers).eval()  # the task goes on training its own
        elif isinstance(layers, str) and layers in (ALL, AVERAGE, TOP):
            self.name = layers
        elif isinstance(layers, str | int | np.integer):
            self.layer = _read_number(layers, num_layers=num_layers)
        else:
            raise ConfigError(_explain_other(layers, num_layers=num_layers))
        if self.mix is not None and len(self.mix.weights) != num_layers:
            raise ConfigError(
                f"this mix weighs {len(self.mix.weights)} layers but the model has {num_layers}; "
                "use the model it was trained with"
            )

    @property
    def keeps_all(self) -> bool:
        """Whether a token gets one vector a layer."""
        return self.name == ALL

    @property
    def is_per_sentence(self) -> bool:
        """Whether one token's result depends on the others: layer norm looks at all of them."""
        return self.mix is not None and self.mix.normalizes

    def __str__(self) -> str:
        """Name the choice in files."""
        if self.mix is not None:
            # Nine digits tell any two numbers of single precision apart.
            weights = ",".join(f"{weight:.9g}" for weight in self.mix.weights.tolist())
            normalized = ";normalized" if self.mix.normalizes else ""
            return f"mix({weights};scale={self.mix.scale.item():.9g}{normalized})"
        return self.name or str(self.layer)

    @torch.no_grad()
    def __call__(self, layers: Tensor) -> Tensor:
        """Apply the choice; a mix's dropout is for training only."""
        if self.mix is not None:
            return self.mix.to(layers.device)(layers)
        if self.layer is not None:
            return layers[self.layer]
        if self.name == TOP:
            return layers[-1]
        if self.name == AVERAGE:
            return layers.mean(dim=0)
        return layers


def _explain_other(layers: object, *, num_layers: int) -> str:
    """Say what to give instead of something that is no choice of layers."""
    if not hasattr(layers, "__len__") or isinstance(layers, bytes | dict):
        return (
            f"mix is {layers!r:.60}; choose all, average, top, a layer's number from 0 to "
            f"{num_layers - 1} or a ScalarMix"
        )
    return (
        f"mix is {layers!r:.60}, which could be layer numbers or weights; for a weighted sum give "
        "ScalarMix.from_weights([...]), for the numbers inside a softmax "
        f"ScalarMix(num_layers={num_layers}, initial_weights=[...]), and to pick several layers "
        "take them from layers() or mix='all'"
    )


def _read_number(layers: str | int | np.integer[Any], *, num_layers: int) -> int:
    try:
        number = int(layers)
    except ValueError:
        number = -1
    if isinstance(layers, bool) or not 0 <= number < num_layers:
        raise ConfigError(
            f"layers is {layers!r}; choose all, average, top or a number from 0 to {num_layers - 1}"
        )
    return number
