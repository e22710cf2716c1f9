"""Take a bounded amount of text from all documents of a part, the beginning of each."""

from elmore.pretrain.corpus import CorpusPart
from elmore.pretrain.reader import Document, Sentence

# A document shorter than this says little about how state is carried.
LEAST_TOKENS = 200


def sample_documents(part: CorpusPart, *, max_tokens: int) -> list[Document]:
    """Return the beginnings of documents, spread over the part, of about `max_tokens` in all."""
    if not part.num_documents:
        return []
    room = max(LEAST_TOKENS, max_tokens // part.num_documents)
    every = max(1, part.num_documents * room // max(1, max_tokens))
    taken: list[Document] = []
    num_tokens = 0
    for number, document in enumerate(part.documents()):
        if number % every:
            continue
        beginning = _take_tokens(document, room)
        num_tokens += sum(map(len, beginning))
        taken.append(beginning)
        if num_tokens >= max_tokens:
            break
    return taken


def _take_tokens(document: Document, max_tokens: int) -> Document:
    """Return whole sentences until there are enough tokens, at least one sentence."""
    sentences: list[Sentence] = []
    num_tokens = 0
    for sentence in document:
        if sentences and num_tokens + len(sentence) > max_tokens:
            break
        sentences.append(sentence)
        num_tokens += len(sentence)
    return sentences
