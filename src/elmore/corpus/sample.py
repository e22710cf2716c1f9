"""Sample a limited amount of text from a part, spread evenly over its documents or its tokens."""

import math
from itertools import count

import numpy as np

from elmore.corpus.part import CorpusPart
from elmore.text.batches import Document

# Shorter samples say little about the effect of carried state.
LEAST_TOKENS = 200
GOLDEN_SHARE = (5**0.5 - 1) / 2


def sample_documents(part: CorpusPart, *, max_tokens: int) -> list[Document]:
    """Return the beginnings of evenly spread documents, about `max_tokens` in all.

    Nothing else of the part is read.
    """
    if not part.num_documents:
        return []
    room = max(LEAST_TOKENS, math.ceil(max_tokens / part.num_documents))
    # Many documents may be shorter than their room.
    expected = min(room, max(1.0, part.num_tokens / part.num_documents))
    number = min(part.num_documents, math.ceil(max_tokens / expected))
    return [
        part.beginning(index * part.num_documents // number, max_tokens=room)
        for index in range(number)
    ]


def sample_stretches(part: CorpusPart, *, max_tokens: int) -> list[Document]:
    """Return stretches of text, evenly spread over all tokens, about `max_tokens` in all.

    Long documents contribute more stretches, whereas `sample_documents` treats all documents alike.
    A stretch ends with its document, so very short documents contribute less than their share.
    """
    if max_tokens >= part.num_tokens:
        return list(part.documents())
    taken: dict[int, Document] = {}  # by start, so that no stretch is taken twice
    num_tokens = 0
    for number in count():
        # Multiples of the golden ratio are spread evenly, however many there will be.
        offset = int(number * GOLDEN_SHARE % 1 * part.num_symbols)
        start = int(part.sentence_bounds(np.array([offset]))[0][0])
        if start not in taken:
            taken[start] = part.stretch(start, max_tokens=LEAST_TOKENS)
            num_tokens += sum(map(len, taken[start]))
        if num_tokens >= max_tokens:
            break
    return [taken[start] for start in sorted(taken)]
