"""Take a bounded amount of text from a part, spread over it by documents or by tokens."""

import math
from itertools import count

import numpy as np

from elmore.corpus.part import CorpusPart
from elmore.text.batches import Document

# Less of a document says little about how state is carried.
LEAST_TOKENS = 200
GOLDEN_SHARE = (5**0.5 - 1) / 2


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

    Long documents have more of them, where `sample_documents` takes each document alike. A stretch
    ends with its document, so documents shorter than one have less than their share.
    """
    if max_tokens >= part.num_tokens:
        return list(part.documents())
    taken: dict[int, Document] = {}  # by where they begin, so that no sentence begins two
    num_tokens = 0
    for number in count():
        # Multiples of this share fall evenly, however many of them there will be.
        offset = int(number * GOLDEN_SHARE % 1 * part.num_symbols)
        start = int(part.sentence_bounds(np.array([offset]))[0][0])
        if start not in taken:
            taken[start] = part.stretch(start, max_tokens=LEAST_TOKENS)
            num_tokens += sum(map(len, taken[start]))
        if num_tokens >= max_tokens:
            break
    return [taken[start] for start in sorted(taken)]
