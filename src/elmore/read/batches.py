"""Cut sentences into windows and batches of bounded size."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from elmore.text.batches import NUM_MARKERS

_Item = TypeVar("_Item")


def cut_windows(
    sentences: Iterable[_Item],
    *,
    max_tokens: int,
    multiple_of: int = 1,
    size: Callable[[Any], int] = len,
) -> Iterator[list[_Item]]:
    """Yield windows of at least `max_tokens` tokens, in whole groups of `multiple_of` sentences.

    The last window may be smaller. `size` returns the number of tokens of a sentence. Sentences are
    consumed only when needed.
    """
    window: list[_Item] = []
    num_tokens = 0
    for sentence in sentences:
        window.append(sentence)
        num_tokens += size(sentence) + NUM_MARKERS
        if num_tokens >= max_tokens and len(window) % multiple_of == 0:
            yield window
            window, num_tokens = [], 0
    if window:
        yield window


def cut_batches(lengths: Sequence[int], *, max_tokens: int) -> Iterator[list[int]]:
    """Group sentences of similar length into batches of at most `max_tokens`; yield their indices.

    A longer sentence is a batch of its own. The batch that is not full has the shortest sentences,
    because there the unused rows cost the fewest steps.

    >>> list(cut_batches([5, 1, 4, 1], max_tokens=6))
    [[0], [2, 1, 3]]
    """
    batch: list[int] = []
    num_tokens = 0
    for number in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        if batch and num_tokens + lengths[number] > max_tokens:
            yield batch
            batch, num_tokens = [], 0
        batch.append(number)
        num_tokens += lengths[number]
    if batch:
        yield batch


def chain_documents(sentences: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return the indices of each document's sentences; an empty sentence ends a document.

    The first document may have started in the previous window and the last may continue in the
    next; either may be empty.

    >>> chain_documents([["a"], ["b"], [], ["c"]])
    [[0, 1], [3]]
    """
    chains: list[list[int]] = [[]]
    for number, sentence in enumerate(sentences):
        if sentence:
            chains[-1].append(number)
        else:
            chains.append([])
    return chains
