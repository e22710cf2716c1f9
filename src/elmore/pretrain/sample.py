"""Take a bounded amount of text from a part, spread over it by documents or by tokens."""

import math

import numpy as np

from elmore.pretrain.corpus import CorpusPart
from elmore.pretrain.reader import Document

# Less of a document says little about how state is carried.
LEAST_TOKENS = 200


def sample_documents(part: CorpusPart, *, max_tokens: int) -> list[Document]:
    """Return the beginnings of documents, evenly spread, of about `max_tokens` in all.

    Only these beginnings are read, whatever the size of the part and of its documents.
    """
    if not part.num_documents:
        return []
    room = max(LEAST_TOKENS, math.ceil(max_tokens / part.num_documents))
    # Many documents may be shorter than the room that each one has.
    expected = min(room, max(1.0, part.num_tokens / part.num_documents))
    number = min(part.num_documents, math.ceil(max_tokens / expected))
    return [
        part.beginning(place * part.num_documents // number, max_tokens=room)
        for place in range(number)
    ]


def sample_stretches(part: CorpusPart, *, max_tokens: int) -> list[Document]:
    """Return stretches of text, evenly spread over all tokens, of about `max_tokens` in all.

    Long documents have more of them: what is found is what an ordinary token would show, where
    `sample_documents` shows an ordinary document.
    """
    if not part.num_symbols:
        return []
    num_stretches = math.ceil(min(max_tokens, part.num_tokens) / LEAST_TOKENS)
    edges = np.linspace(0, part.num_symbols, num_stretches, endpoint=False).astype(np.int64)
    # Two edges in one long sentence would read it twice.
    starts = np.unique(part.sentence_bounds(edges)[0])
    return [part.stretch(int(start), max_tokens=LEAST_TOKENS) for start in starts]
