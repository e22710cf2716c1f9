"""From layers to vectors: all, some, one, their average, sum or a weighted sum, by sentence.

Shapes: L layers, N tokens of a batch (markers included), D both directions of one layer.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import reduce
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmore.errors import ConfigError
from elmore.model.scalar_mix import ScalarMix
from elmore.read.engine import ReadBatch
from elmore.read.reader import Reader

ALL, AVERAGE, SUM, TOP = "all", "average", "sum", "top"

# A list is layer numbers, never weights.
Layers = str | int | np.integer[Any] | Sequence[int] | ScalarMix


Array = NDArray[np.float32]


class Output(StrEnum):
    """The type in which vectors are returned."""

    NUMPY = "numpy"
    TORCH = "torch"
    """Tensors, on the device that computed them."""


class LayerChoice:
    """Reduce (L, N, D) to the chosen layers: (N, D), or (layers, N, D) for several."""

    def __init__(self, layers: Layers, *, num_layers: int) -> None:
        self.mix: ScalarMix | None = None
        self.numbers: list[int] | None = None  # if several layers are chosen
        self.number: int | None = None
        self.name = ""
        if isinstance(layers, str):
            layers = _read_text(layers)
        if isinstance(layers, ScalarMix):
            self.mix = copy.deepcopy(layers).eval()  # a task may keep training the original
            _check_mix(self.mix, num_layers=num_layers)
        elif isinstance(layers, str) and layers in (ALL, AVERAGE, SUM, TOP):
            self.name = layers
            self.numbers = list(range(num_layers)) if layers == ALL else None
        elif isinstance(layers, str) or not _has_items(layers):
            self.number = _read_number(layers, num_layers=num_layers)
        else:
            self.numbers = _read_numbers(layers, num_layers=num_layers)

    @property
    def num_kept(self) -> int | None:
        """The number of vectors per token; None for a single one, without a layer axis."""
        return None if self.numbers is None else len(self.numbers)

    def __str__(self) -> str:
        """Return the name of the choice in vector files."""
        if self.mix is not None:
            # Nine digits identify every number in single precision.
            weights = ",".join(f"{weight:.9g}" for weight in self.mix.weights.tolist())
            normalized = ";normalized" if self.mix.normalizes else ""
            return f"mix({weights};scale={self.mix.scale.item():.9g}{normalized})"
        if self.name:
            return self.name
        return str(self.number) if self.numbers is None else ",".join(map(str, self.numbers))

    @torch.no_grad()
    def __call__(self, layers: Tensor) -> Tensor:
        """Apply the choice, a mix without its dropout."""
        if self.mix is not None:
            return self.mix.to(layers.device)(layers)
        if self.number is not None:
            return layers[self.number]
        if self.name == TOP:
            return layers[-1]
        if self.name in (AVERAGE, SUM):
            # One by one: torch's own sum of 5 layers or more depends on the number of positions.
            total = reduce(torch.add, layers)
            return total / len(layers) if self.name == AVERAGE else total
        return layers if self.name == ALL else layers[self.numbers]

    def cut(self, batch: ReadBatch, *, output: Output = Output.NUMPY) -> list[Any]:
        """Return one (tokens, D) or (layers, tokens, D) array per sentence, without markers."""
        pieces = [
            slice(start + 1, end - 1) for start, end in pairwise([0, *accumulate(batch.lengths)])
        ]
        layers, normalizes = batch.layers, self.mix is not None and self.mix.normalizes
        if _is_plain(layers) and (
            self.mix is None or (_is_plain(self.mix.scale) and not normalizes)
        ):
            # Not by torch, which would wake up its threads. They wait for each other, for
            # milliseconds if another program uses a core.
            combine = self._make_combination()
            arrays = layers.numpy()
            vectors = [combine(arrays[:, piece]) for piece in pieces]
        else:
            if normalizes:  # layer norm is over a sentence
                parts = torch.split(layers, batch.lengths, dim=1)
                chosen = torch.cat([self(part) for part in parts])
            else:
                chosen = self(layers)
            # Copied, because a slice would keep the whole batch alive.
            chosen = chosen.to(torch.float32)
            if output is Output.TORCH and not chosen.is_cpu:
                with torch.inference_mode(False):
                    return [chosen[..., piece, :].clone() for piece in pieces]
            arrays = chosen.cpu().numpy()
            vectors = [arrays[..., piece, :].copy() for piece in pieces]
        if output is Output.NUMPY:
            return vectors
        with torch.inference_mode(False):  # so that the tensors can be used in training
            return [torch.from_numpy(array) for array in vectors]

    def _make_combination(self) -> Callable[[Array], Array]:
        """Return what `__call__` computes, to the bit, in numpy; the result is a new array."""
        if self.mix is not None:
            shares = list(self.mix.weights.detach().softmax(dim=0).numpy())
            scale = self.mix.scale.detach().numpy()[()]
            return lambda layers: scale * _add_up(map(np.multiply, layers, shares))
        if self.name == AVERAGE:
            return lambda layers: _add_up(layers) / np.float32(len(layers))
        if self.name == SUM:
            return _add_up
        if self.numbers is not None:
            return lambda layers: layers[self.numbers]
        number = -1 if self.name == TOP else self.number
        return lambda layers: layers[number].copy()

    def make_empty(self, reader: Reader, *, output: Output = Output.NUMPY) -> Any:
        """Return the vectors of a sentence without tokens."""
        shape = (*([] if self.num_kept is None else [self.num_kept]), 0, reader.output_dim)
        if output is Output.TORCH:
            return torch.empty(shape, device=reader.device)
        return np.empty(shape, np.float32)


def _is_plain(tensor: Tensor) -> bool:
    return tensor.is_cpu and tensor.dtype == torch.float32


def _add_up(layers: Iterable[Array]) -> Array:
    """Add one by one, into a new array."""
    first, *others = layers
    total: Array = first.copy()
    for layer in others:
        total += layer
    return total


def _read_text(layers: str) -> Layers:
    """Return the numbers in a text such as "0,2"; return any other text unchanged."""
    parts = layers.split(",")
    if len(parts) > 1 and all(part.strip().isdecimal() for part in parts):
        return [int(part) for part in parts]
    return layers


def _has_items(layers: object) -> bool:
    """Return whether this is a list of some kind; a tensor or an array may be a single number."""
    if isinstance(layers, Tensor | np.ndarray):
        return layers.ndim > 0
    return hasattr(layers, "__len__")


def _read_number(layers: object, *, num_layers: int) -> int:
    if isinstance(layers, Tensor | np.ndarray) and layers.ndim == 0:
        layers = layers.item()
    is_whole = isinstance(layers, str | int | np.integer) and not isinstance(layers, bool)
    try:
        number = int(layers) if is_whole else -1  # type: ignore[call-overload]
    except ValueError:
        number = -1
    if not 0 <= number < num_layers:
        raise ConfigError(
            f"layers is {layers!r:.60}; give all, average, sum, top, a layer number from 0 to "
            f"{num_layers - 1}, a list of layer numbers or a ScalarMix"
        )
    return number


def _read_numbers(layers: Any, *, num_layers: int) -> list[int]:
    """Read a list of layer numbers; floats are refused, because they were meant as weights."""
    listed = layers.tolist() if isinstance(layers, Tensor | np.ndarray) else layers
    numbers = [] if isinstance(listed, bytes | dict) else list(listed)
    if any(isinstance(number, float | np.floating) for number in numbers):
        raise ConfigError(
            f"layers is {layers!r:.60}, but a list must hold layer numbers; for a weighted sum "
            "give ScalarMix.from_weights([...]), or for logits "
            f"ScalarMix(num_layers={num_layers}, initial_logits=[...])"
        )
    checked = [_read_number(number, num_layers=num_layers) for number in numbers]
    if not checked or len(set(checked)) < len(checked):
        raise ConfigError(
            f"layers is {layers!r:.60}; give a list of different layer numbers from 0 to "
            f"{num_layers - 1}"
        )
    return checked


def _check_mix(mix: ScalarMix, *, num_layers: int) -> None:
    if len(mix.weights) != num_layers:
        raise ConfigError(
            f"this mix has weights for {len(mix.weights)} layers, but the model has {num_layers}; "
            "use the model it was trained with"
        )
