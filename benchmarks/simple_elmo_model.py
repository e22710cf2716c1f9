"""simple_elmo's `ElmoModel`, which runs bilm-tf's graph in TensorFlow."""

import logging
from pathlib import Path
from typing import Any

import numpy as np


class SimpleElmo:
    """A folder with model.hdf5 and options.json; vectors are averages of the layers."""

    def __init__(self, folder: Path) -> None:
        from simple_elmo import ElmoModel  # noqa: PLC0415  from another environment

        logging.getLogger("simple_elmo").setLevel(logging.ERROR)
        self._model = ElmoModel()
        self._model.load(str(folder), max_batch_size=32)

    def embed(self, sentences: list[list[str]]) -> list[np.ndarray[Any, Any]]:
        """Return (tokens, D) per sentence; its state carries over from batch to batch."""
        padded = self._model.get_elmo_vectors(sentences)
        return [rows[: len(tokens)] for rows, tokens in zip(padded, sentences, strict=True)]
