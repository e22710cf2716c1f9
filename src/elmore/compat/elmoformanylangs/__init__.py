"""The Embedder of ELMoForManyLangs, with the same arguments, arrays and order of reading.

LSTM state is carried from batch to batch. As in ELMoForManyLangs, sentences are sorted by length
and their batches are read in an order from Python's `random`, so vectors depend on its seed. The
additional keyword `policy="reset"` starts every sentence from the initial state instead.
"""

import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import elmore

Array = NDArray[np.float32]

__all__ = ["Embedder"]


class Embedder:
    """Computes the vectors of tokenized sentences."""

    def __init__(
        self, model_dir: str | Path, batch_size: int = 64, *, policy: str = "stream"
    ) -> None:
        self.model_dir = model_dir
        self.batch_size = batch_size
        self.use_cuda = torch.cuda.is_available()
        self._embedder = elmore.load(
            model_dir,
            state=policy,
            layers="all",
            device="cuda" if self.use_cuda else "cpu",
            max_sentence_tokens=sys.maxsize,
        )

    @property
    def num_layers(self) -> int:
        """The number of layers, the token layer included."""
        return self._embedder.num_layers

    def sents2elmo(self, sents: Iterable[Sequence[str]], output_layer: int = -1) -> list[Array]:
        """Return one (tokens, D) array per sentence; `output_layer` -2 gives (layers, tokens, D).

        -1 is the mean of the layers; 0, 1 and 2 are layers.
        """
        sentences = [list(sentence) for sentence in sents]
        found: dict[int, Array] = {}
        for number, layers in self.read(sentences, range(len(sentences))):
            found[number] = layers if output_layer == -2 else choose(layers, output_layer)
        return [found[number] for number in range(len(sentences))]

    def read(
        self, sentences: Sequence[Sequence[str]], order: Iterable[int]
    ) -> Iterator[tuple[int, Array]]:
        """Yield the number and all layers of each sentence, in the order in which they are read."""
        by_length = sorted(order, key=lambda number: -len(sentences[number]))
        starts = range(0, len(by_length), self.batch_size)
        batches = [by_length[start : start + self.batch_size] for start in starts]
        random.shuffle(batches)
        for batch in batches:
            arrays: list[Any] = self._embedder.embed([sentences[number] for number in batch])
            yield from zip(batch, arrays, strict=True)


def choose(layers: Array, output_layer: int) -> Array:
    """Return the mean of the layers for -1, otherwise one layer."""
    return layers.mean(axis=0) if output_layer == -1 else layers[output_layer]
