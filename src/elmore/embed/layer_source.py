"""Where task networks get a frozen biLM's layers from: computed in each call, or stored on disk.

Shapes: L layers, B sentences, T tokens in the longest, D both directions of a layer.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmore.config import VECTORS, Precision, StatePolicy, read_precision
from elmore.embed.embedder import Embedder
from elmore.errors import ConfigError, ModelError
from elmore.text.batches import refuse_string

Rounded = NDArray[Any]  # float16 or float32


def find_dtype(precision: Precision | str) -> np.dtype[Any]:
    """Return the type of layers on disk, little-endian on every machine.

    f16 needs half the space and keeps three digits; dropout adds far more noise than rounding.
    """
    return np.dtype({Precision.F16: "<f2", Precision.F32: "<f4"}[Precision(precision)])


class LayerSource(Protocol):
    """Anything that returns a biLM's layers for sentences."""

    @property
    def num_layers(self) -> int:
        """The number of LSTM layers plus one for the token layer."""

    @property
    def layer_dim(self) -> int:
        """Width of a layer: both directions."""

    def find(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Return (L, B, T, D) float32, zero at padding."""


class LiveLayers:
    """Computes the layers in each call, and rounds them as the cache does.

    So a task network trained with cached layers predicts the same with these: to the bit if the
    same kernel computed both.
    """

    def __init__(self, embedder: Embedder, precision: Precision | str = Precision.F16) -> None:
        if embedder.state is not StatePolicy.RESET:
            raise ConfigError(
                f"an embedder for tasks needs state 'reset', but this one has '{embedder.state}': "
                "a sentence must always have the same layers; load it with state='reset'"
            )
        self.embedder = embedder
        self.precision = read_precision("precision", precision, VECTORS)

    @property
    def num_layers(self) -> int:
        """The number of LSTM layers plus one for the token layer."""
        return self.embedder.num_layers

    @property
    def layer_dim(self) -> int:
        """Width of a layer: both directions."""
        return self.embedder.vector_dim

    def find(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Return (L, B, T, D) float32, zero at padding."""
        return pad_layers(self.compute(sentences))

    def compute(self, sentences: Sequence[Sequence[str]]) -> list[Rounded]:
        """Return one rounded (L, T, D) array per sentence; repeated ones are computed once."""
        for sentence in sentences:
            refuse_string(sentence)
        distinct = list(dict.fromkeys(tuple(sentence) for sentence in sentences))
        arrays = self.embedder.embed(distinct, layers="all")
        computed = {
            tokens: round_layers(layers, self.precision)
            for tokens, layers in zip(distinct, arrays, strict=True)
        }
        return [computed[tuple(sentence)] for sentence in sentences]


def round_layers(layers: NDArray[np.float32], precision: Precision) -> Rounded:
    """Round layers to the precision that a task gets; raise an error if a number overflows.

    The largest number in half precision is 65504. Trained biLMs stay far below it. Clipping larger
    numbers silently would give wrong vectors without anyone noticing.
    """
    with np.errstate(over="ignore"):
        rounded = layers.astype(find_dtype(precision))
    if not np.isfinite(rounded).all():
        if not np.isfinite(layers).all():
            raise ModelError(
                "the biLM gives infinite numbers or NaN for a token; its weights are damaged or "
                "its training diverged, so use another model"
            )
        raise ModelError(
            f"the biLM gives {np.abs(layers).max():g} for a token, but half precision ends at "
            f"65504; store its layers as '{Precision.F32}' instead of '{precision}'"
        )
    return rounded


def pad_layers(arrays: Sequence[Rounded]) -> Tensor:
    """Stack the (L, T, D) arrays of several sentences into (L, B, T, D) float32."""
    num_layers, _, dim = arrays[0].shape
    longest = max(array.shape[1] for array in arrays)
    padded = np.zeros((num_layers, len(arrays), longest, dim), dtype=np.float32)
    for index, array in enumerate(arrays):
        padded[:, index, : array.shape[1]] = array
    return torch.from_numpy(padded)
