"""Reduce the vectors of a sentence's tokens to one."""

from enum import StrEnum

import numpy as np

from elmore.embed.layer_choice import Array


class Pool(StrEnum):
    """How the vectors of a sentence's tokens are reduced to one."""

    MEAN = "mean"
    MAX = "max"
    LAST = "last"
    """Each direction after the whole sentence: the forward LM at the last token, the backward LM at
    the first."""


class SentencePool(StrEnum):
    """How `sentence_vectors` makes one vector per sentence."""

    MEAN = "mean"
    MAX = "max"
    LAST = "last"
    SIMILARITY = "similarity"
    """For comparing meanings; see embed/similarity.py."""


def pool_tokens(vectors: Array, pool: Pool) -> Array:
    """Reduce (tokens, D) to (1, D), or (layers, tokens, D) to (layers, 1, D); zeros if empty."""
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
