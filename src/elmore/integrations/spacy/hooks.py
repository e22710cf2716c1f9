"""What `vector` and `similarity` of docs, spans and tokens give: the rows of `doc.tensor`.

The hooks are plain functions, so that docs can be pickled.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span, Token

Array = NDArray[Any]  # float32; spaCy declares float64


def add_hooks(doc: Doc) -> None:
    """Let a doc, its spans and its tokens have the vectors in `doc.tensor`.

    spaCy leaves hooks out when it saves docs or sends them to another process; call this to add
    them again.
    """
    doc.user_hooks.update(
        vector=_doc_vector, vector_norm=_norm, has_vector=_has_vector, similarity=_similarity
    )
    doc.user_token_hooks.update(
        vector=_token_vector, vector_norm=_norm, has_vector=_has_vector, similarity=_similarity
    )
    # Without vector_norm: spaCy calls the hook `vector` in its place, and its own is right.
    doc.user_span_hooks.update(vector=_span_vector, has_vector=_has_vector, similarity=_similarity)


def _token_vector(token: Token) -> Array:
    return token.doc.tensor[token.i]


def _span_vector(span: Span) -> Array:
    return _mean(span.doc.tensor[span.start : span.end])


def _doc_vector(doc: Doc) -> Array:
    return _mean(doc.tensor)


def _mean(rows: Array) -> Array:
    return rows.mean(axis=0) if len(rows) else np.zeros(rows.shape[1], dtype=rows.dtype)


def _norm(item: Any) -> float:
    return float(np.linalg.norm(item.vector))


def _has_vector(item: Any) -> bool:
    doc = item if isinstance(item, Doc) else item.doc
    return bool(doc.tensor.size)


def _similarity(item: Any, other: Any) -> float:
    """Return the cosine of two vectors; 0 if one of them is zero."""
    norms = float(np.linalg.norm(item.vector)) * float(np.linalg.norm(other.vector))
    return float(np.dot(item.vector, other.vector)) / norms if norms else 0.0
