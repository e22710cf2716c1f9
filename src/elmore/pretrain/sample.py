"""Take a bounded amount of text from a part: the beginnings of documents spread over it."""

import math

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
