"""Group sentences into documents."""

from collections.abc import Iterable, Iterator


def limit_sentences(
    sentences: Iterable[list[str]], *, max_tokens: int | None
) -> Iterator[list[str]]:
    """Yield sentences up to the one that reaches `max_tokens`, counting one marker per sentence."""
    num_tokens = 0
    for sentence in sentences:
        yield sentence
        num_tokens += len(sentence) + bool(sentence)
        if max_tokens is not None and num_tokens >= max_tokens:
            return


def group_documents(
    sentences: Iterable[list[str]], *, by_sentence: bool = False
) -> Iterator[list[list[str]]]:
    """Yield documents, which end at an empty sentence; or every sentence as a document.

    >>> list(group_documents([["a"], ["b"], [], ["c"]]))
    [[['a'], ['b']], [['c']]]
    """
    document: list[list[str]] = []
    for sentence in sentences:
        if sentence:
            document.append(sentence)
        if document and (by_sentence or not sentence):
            yield document
            document = []
    if document:
        yield document
