"""The vectors of a batch, sentence by sentence, as users get them.

Shapes: L layers, N tokens of a batch (markers included), D both directions of one layer.
"""

from collections.abc import Callable
from itertools import accumulate, pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmore.embed.layer_choice import LayerChoice
from elmore.read.engine import ReadBatch
from elmore.read.reader import Reader

Array = NDArray[np.float32]


def make_cutter(choice: LayerChoice) -> Callable[[ReadBatch], list[Array]]:
    """Return what turns a batch into one (tokens, D) or (L, tokens, D) array per sentence."""

    def cut(batch: ReadBatch) -> list[Array]:
        ends = list(accumulate(batch.lengths))
        chosen = _choose(choice, batch.layers, ends).to("cpu", torch.float32).numpy()
        return [
            # Copied, since a slice would keep the whole batch alive.
            chosen[..., start + 1 : end - 1, :].copy()
            for start, end in pairwise([0, *ends])
        ]

    return cut


def make_empty(choice: LayerChoice, reader: Reader) -> Array:
    """Return the vectors of a sentence without tokens."""
    shape = (0, reader.output_dim)
    return np.empty((reader.num_layers, *shape) if choice.keeps_all else shape, np.float32)


def _choose(choice: LayerChoice, layers: Tensor, ends: list[int]) -> Tensor:
    """Return (N, D), or (L, N, D) for all layers; `ends` is where each sentence ends."""
    if not choice.is_per_sentence:
        return choice(layers)
    parts = torch.tensor_split(layers, ends[:-1], dim=1)
    return torch.cat([choice(part) for part in parts])
