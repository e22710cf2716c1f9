"""Reduce the vectors of a sentence's tokens to one."""

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from elmore.embed.layer_choice import Array
from elmore.embed.similarity import pool_similarity
from elmore.weights.similarity_file import Similarity


class Pool(StrEnum):
    """How the vectors of a sentence's tokens are reduced to one."""

    MEAN = "mean"
    MAX = "max"
    LAST = "last"
    """Each direction after the whole sentence: the forward LM at the last token, the backward LM at
    the first."""
    SIMILARITY = "similarity"
    """For comparing meanings; see embed/similarity.py. It has layers and a width of its own."""


def pool_sentence(
    tokens: Sequence[str], vectors: Array, pool: Pool, *, similarity: Similarity | None = None
) -> Array:
    """Reduce (tokens, D) to (1, D), or (layers, tokens, D) to (layers, 1, D); zeros if empty.

    `Pool.SIMILARITY` needs `similarity`, and gives one vector of its width.
    """
    if pool is Pool.SIMILARITY:
        assert similarity is not None
        return pool_similarity(tokens, vectors, similarity)[None]
    if vectors.shape[-2] == 0:
        return np.zeros((*vectors.shape[:-2], 1, vectors.shape[-1]), dtype=np.float32)
    match pool:
        case Pool.MEAN:
            return vectors.mean(axis=-2, keepdims=True)
        case Pool.MAX:
            return vectors.max(axis=-2, keepdims=True)
        case Pool.LAST:
            half = vectors.shape[-1] // 2
            return np.concatenate([vectors[..., -1:, :half], vectors[..., :1, half:]], axis=-1)
