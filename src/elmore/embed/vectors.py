"""Split the output of a batch into one array per sentence.

Shapes: L layers, N tokens of a batch (markers included), D both directions of one layer.
"""

from collections.abc import Callable
from enum import StrEnum
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmore.embed.layer_choice import LayerChoice
from elmore.read.engine import ReadBatch
from elmore.read.reader import Reader

Array = NDArray[np.float32]


class Output(StrEnum):
    """The type in which vectors are returned."""

    NUMPY = "numpy"
    TORCH = "torch"
    """Tensors, on the device that computed them."""


def make_cutter(
    choice: LayerChoice, *, output: Output = Output.NUMPY
) -> Callable[[ReadBatch], list[Any]]:
    """Return a function that splits a batch into (tokens, D) or (layers, tokens, D) arrays."""

    def cut(batch: ReadBatch) -> list[Any]:
        ends = list(accumulate(batch.lengths))
        chosen = _choose(choice, batch.layers, ends).to(torch.float32)
        slices = [
            (..., slice(start + 1, end - 1), slice(None)) for start, end in pairwise([0, *ends])
        ]
        # Copied, because a slice would keep the whole batch alive. On the CPU numpy copies, because
        # torch would wake up its threads for it.
        with torch.inference_mode(False):  # so that the tensors can be used in training
            if output is Output.TORCH and chosen.device.type != "cpu":
                return [chosen[piece].clone() for piece in slices]
            arrays = chosen.cpu().numpy()
            copies = [arrays[piece].copy() for piece in slices]
            return copies if output is Output.NUMPY else list(map(torch.from_numpy, copies))

    return cut


def make_empty(choice: LayerChoice, reader: Reader, *, output: Output = Output.NUMPY) -> Any:
    """Return the vectors of a sentence without tokens."""
    shape: tuple[int, ...] = (0, reader.output_dim)
    if choice.num_kept is not None:
        shape = (choice.num_kept, *shape)
    if output is Output.TORCH:
        return torch.empty(shape, device=reader.device)
    return np.empty(shape, np.float32)


def _choose(choice: LayerChoice, layers: Tensor, ends: list[int]) -> Tensor:
    """Return (N, D), or (layers, N, D) for several layers; `ends` are the ends of sentences."""
    if not choice.is_per_sentence:
        return choice(layers)
    parts = torch.tensor_split(layers, ends[:-1], dim=1)
    return torch.cat([choice(part) for part in parts])
