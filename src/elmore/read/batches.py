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
    """Gather sentences until they have `max_tokens`, in groups of `multiple_of` kept together.

    `size` counts the tokens of one. No sentence is asked for before it is needed.
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
    """Group sentences of like length, given by number: a batch has `max_tokens` at most.

    A sentence longer than that is a batch of its own. The shortest end up in the batch that is not
    full, where a lack of rows costs the fewest steps.

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
    """Return the numbers of each document's sentences; an empty sentence ends a document.

    The first document goes on from before, and the last goes on after: either may be empty.

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
