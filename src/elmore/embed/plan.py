"""Cut sentences into windows and batches of bounded size."""

from collections.abc import Iterable, Iterator, Sequence

from elmore.text.batches import NUM_MARKERS

Sentence = Sequence[str]


def cut_windows(
    sentences: Iterable[Sentence], *, max_tokens: int, multiple_of: int = 1
) -> Iterator[list[Sentence]]:
    """Gather sentences until they have `max_tokens`, in groups of `multiple_of` kept together.

    No sentence is asked for before it is needed.
    """
    window: list[Sentence] = []
    num_tokens = 0
    for sentence in sentences:
        window.append(sentence)
        num_tokens += len(sentence) + NUM_MARKERS
        if num_tokens >= max_tokens and len(window) % multiple_of == 0:
            yield window
            window, num_tokens = [], 0
    if window:
        yield window


def cut_batches(
    lengths: Sequence[int], *, max_tokens: int, max_rows: int | None = None
) -> Iterator[list[int]]:
    """Group places of sentences, of like length together: a batch has `max_tokens`, `max_rows`.

    A sentence longer than that is a batch of its own. Tokens are what a batch costs in memory. Rows
    are what one reading of the weights serves: from some number on, more gain nothing, and a batch
    that ends there leaves long sentences more tokens in theirs. The shortest end up in the batch
    that is not full, where a lack of rows costs the fewest steps.

    >>> list(cut_batches([5, 1, 4, 1], max_tokens=6))
    [[0], [2, 1, 3]]
    >>> list(cut_batches([5, 1, 4, 1], max_tokens=9, max_rows=2))
    [[0, 2], [1, 3]]
    """
    batch: list[int] = []
    num_tokens = 0
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if batch and (num_tokens + lengths[place] > max_tokens or len(batch) == max_rows):
            yield batch
            batch, num_tokens = [], 0
        batch.append(place)
        num_tokens += lengths[place]
    if batch:
        yield batch


def chain_documents(sentences: Sequence[Sentence]) -> list[list[int]]:
    """Return the places of each document's sentences; an empty sentence ends a document.

    The first document goes on from before, and the last goes on after: either may be empty.

    >>> chain_documents([["a"], ["b"], [], ["c"]])
    [[0, 1], [3]]
    """
    chains: list[list[int]] = [[]]
    for place, sentence in enumerate(sentences):
        if sentence:
            chains[-1].append(place)
        else:
            chains.append([])
    return chains
