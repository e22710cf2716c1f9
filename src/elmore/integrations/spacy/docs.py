"""From docs to vectors and back: sentences of spaCy's tokens, and the layers of a doc.

Shapes: L layers, T tokens of a doc, D both directions of one layer.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from elmore import ElmoreError, Embedder

Array = NDArray[np.float32]


def split_sentences(doc: Doc, *, max_tokens: int) -> list[list[str]]:
    """Return the tokens of each sentence, as spaCy has them, whitespace included.

    If no component has set sentence boundaries, the doc is one sentence.
    """
    spans: Iterable[Any] = doc.sents if doc.has_annotation("SENT_START") else [doc]
    sentences = [[token.text for token in span] for span in spans if len(span)]
    longest = max(map(len, sentences), default=0)
    if longest > max_tokens:
        raise ElmoreError(
            f"the doc {doc.text!r:.40} has a sentence of {longest} tokens, but max_sentence_tokens "
            f"is {max_tokens}; add a component that splits sentences, such as 'sentencizer', "
            "before 'elmore'"
        )
    return sentences


def embed_docs(embedder: Embedder, docs: Sequence[Doc], *, layers: Any = "all") -> list[Array]:
    """Return (L, T, D) of each doc, or (T, D) if `layers` is one layer."""
    split = [split_sentences(doc, max_tokens=embedder.max_sentence_tokens) for doc in docs]
    arrays = iter(
        embedder.embed([tokens for sentences in split for tokens in sentences], layers=layers)
    )
    num_kept = embedder.choose_layers(layers).num_kept
    shape = (0, embedder.vector_dim) if num_kept is None else (num_kept, 0, embedder.vector_dim)
    found = []
    for sentences in split:
        parts = list(islice(arrays, len(sentences))) or [np.empty(shape, np.float32)]
        found.append(parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-2))
    return found
