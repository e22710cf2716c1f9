"""A tiny model in bilm-tf's files, and what the formulas give for batches with carried state."""

import json
from pathlib import Path

import numpy as np

from elmore.config import CharacterConfig, LSTMConfig, ModelConfig
from elmore.weights.bilm_tf import write_bilm_tf
from tests import reference, tiny
from tests.weights.peer_files import read_all_arrays

TOLERANCE = 2e-6
# Batches of changing size: rows that are left out keep their state, new ones start from zeros.
BATCHES = [
    [["The", "bank", "of", "<S>"], ["a"], []],
    [["日本語", "naïve"]],
    [["a", "long-" * 20, "."], ["b"], ["c", "d"], ["e"]],
    [["The"], ["bank", "of"]],
]


class OldModel:
    """The files of a model."""

    def __init__(self, folder: Path, **lstm: object) -> None:
        config = ModelConfig(
            lstm=LSTMConfig(**{"num_layers": 2, "cell_dim": 12, "output_dim": 5, **lstm}),
            characters=CharacterConfig(
                max_chars=50,
                splits_characters=True,
                embedding_dim=3,
                filters=((1, 2), (2, 3), (3, 4)),
                num_highway_layers=2,
            ),
        )
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.weights = str(folder / "model.hdf5")
        self.options = str(folder / "options.json")
        self.model = tiny.model(config, scale=0.4)
        write_bilm_tf(self.model, folder / "model.hdf5")

    def expected(self, batches, *, carry=True):
        """Return (layers, tokens, D) of every sentence of every batch."""
        rows = [
            [batch[row] for batch in batches if row < len(batch)]
            for row in range(max(map(len, batches)))
        ]
        options = json.loads(Path(self.options).read_text())
        found = reference.bilm_tf_layers(
            read_all_arrays(Path(self.weights)), options, rows, carry=carry
        )
        waiting = [iter(row) for row in found]
        return [[next(waiting[row]) for row in range(len(batch))] for batch in batches]

    def padding_vector(self):
        """Return the context-free vector of a token whose characters are all zero vectors."""
        arrays = read_all_arrays(Path(self.weights))
        arrays["char_embed"] = np.zeros_like(arrays["char_embed"])
        return reference.bilm_tf_token(arrays, json.loads(Path(self.options).read_text()), "")


def assert_close(found, wanted):
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, atol=TOLERANCE, rtol=0)
