"""Where task networks get a frozen biLM's layers from: computed at each call, or kept on disk.

Shapes: L layers, B sentences, T tokens of the longest, D both directions of a layer.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmore.config import StatePolicy
from elmore.embed.embedder import Embedder
from elmore.errors import ConfigError, ModelError
from elmore.settings import read_choice
from elmore.text.batches import refuse_string

Rounded = NDArray[Any]  # float16 or float32


class LayerPrecision(StrEnum):
    """What a task sees of a layer's numbers, whether they were kept or computed just now."""

    F16 = "f16"
    """Half the disk, and some three digits: less than dropout takes away."""
    F32 = "f32"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numbers as they are stored, the least significant byte first on every machine."""
        return np.dtype("<f2" if self is LayerPrecision.F16 else "<f4")


class LayerSource(Protocol):
    """Anything that gives sentences the layers of one biLM."""

    @property
    def num_layers(self) -> int:
        """The LSTM layers, and the tokens below them."""

    @property
    def layer_dim(self) -> int:
        """Width of a layer: both directions."""

    def find(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Return (L, B, T, D) float32, zero behind the end of a sentence."""


class LiveLayers:
    """Computes the layers of every batch anew, and rounds them as a cache does.

    A task that was fitted with cached layers so predicts the same with these, to the bit where the
    same kernel computed both.
    """

    def __init__(
        self, embedder: Embedder, precision: LayerPrecision | str = LayerPrecision.F16
    ) -> None:
        if embedder.state is not StatePolicy.RESET:
            raise ConfigError(
                f"an embedder for tasks has state 'reset', this one has '{embedder.state}': a "
                "sentence must have the same layers wherever it comes; load it with state='reset'"
            )
        self.embedder = embedder
        self.precision = LayerPrecision(read_choice("precision", precision, LayerPrecision))

    @property
    def num_layers(self) -> int:
        """The LSTM layers, and the tokens below them."""
        return self.embedder.num_layers

    @property
    def layer_dim(self) -> int:
        """Width of a layer: both directions."""
        return self.embedder.vector_dim

    def find(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Return (L, B, T, D) float32, zero behind the end of a sentence."""
        return pad_layers(self.compute(sentences))

    def compute(self, sentences: Sequence[Sequence[str]]) -> list[Rounded]:
        """Return a rounded (L, T, D) array a sentence; a repeated one is computed once."""
        for sentence in sentences:
            refuse_string(sentence)
        distinct = list(dict.fromkeys(tuple(sentence) for sentence in sentences))
        arrays = self.embedder.embed(distinct, layers="all")
        computed = {
            tokens: round_layers(layers, self.precision)
            for tokens, layers in zip(distinct, arrays, strict=True)
        }
        return [computed[tuple(sentence)] for sentence in sentences]


def round_layers(layers: NDArray[np.float32], precision: LayerPrecision) -> Rounded:
    """Return the numbers as a task sees them; refuse those that would not be numbers any more.

    Half precision ends at 65504. Trained biLMs stay far below, so what is beyond is refused: cut
    off in silence, it would be a wrong vector that nobody learns of.
    """
    with np.errstate(over="ignore"):
        rounded = layers.astype(precision.dtype)
    if not np.isfinite(rounded).all():
        if not np.isfinite(layers).all():
            raise ModelError(
                "the biLM gives infinite numbers or none (NaN) for a token; its weights are "
                "damaged or its training diverged, so take another model"
            )
        raise ModelError(
            f"the biLM gives {np.abs(layers).max():g} for a token, and half precision ends at "
            f"65504; keep its layers as '{LayerPrecision.F32}' instead of '{precision}'"
        )
    return rounded


def pad_layers(arrays: Sequence[Rounded]) -> Tensor:
    """Put (L, T, D) arrays of some sentences side by side, as (L, B, T, D) float32."""
    num_layers, _, dim = arrays[0].shape
    longest = max(array.shape[1] for array in arrays)
    padded = np.zeros((num_layers, len(arrays), longest, dim), dtype=np.float32)
    for place, array in enumerate(arrays):
        padded[:, place, : array.shape[1]] = array
    return torch.from_numpy(padded)
