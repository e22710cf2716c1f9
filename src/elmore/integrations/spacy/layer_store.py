"""The layers of docs, computed once: spaCy trains for many epochs on copies of the same docs.

Shapes: L layers, T tokens of a doc, D both directions of one layer.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from elmore.integrations.saved_model import SavedModel
from elmore.integrations.spacy.docs import embed_docs, split_sentences

Array = NDArray[np.float32]
Key = tuple[tuple[str, ...], ...]


class LayerStore:
    """Keeps the layers of docs, up to `max_bytes`; after that, further docs are computed again.

    Nothing is kept before `is_training` is set, so that a trained pipeline uses no memory for docs
    that it reads once.
    """

    def __init__(self, model: SavedModel, *, max_bytes: int) -> None:
        self.model = model
        self.max_bytes = max_bytes
        self.is_training = False
        self.num_bytes = 0
        self.num_computed = 0  # docs
        self._kept: dict[Key, Array] = {}

    def find(self, docs: Sequence[Doc]) -> list[Array]:
        """Return (L, T, D) of each doc."""
        if not self.is_training:
            return embed_docs(self.model.embedder, docs)
        max_tokens = self.model.embedder.max_sentence_tokens
        keys: list[Key] = [
            tuple(map(tuple, split_sentences(doc, max_tokens=max_tokens))) for doc in docs
        ]
        missing = {key: doc for key, doc in zip(keys, docs, strict=True) if key not in self._kept}
        arrays = embed_docs(self.model.embedder, list(missing.values())) if missing else []
        computed = dict(zip(missing, arrays, strict=True))
        self.num_computed += len(computed)
        found = [computed[key] if key in computed else self._kept[key] for key in keys]
        for key, layers in computed.items():
            if self.num_bytes + layers.nbytes <= self.max_bytes:
                self._kept[key] = layers
                self.num_bytes += layers.nbytes
        return found
