"""Which examples share a batch, and in which order: by the seed and the epoch alone."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Lengths = NDArray[np.int32]

# Batches whose examples are sorted together: more waste less, and mix less.
BATCHES_A_POOL = 50


def draw_examples(num_examples: int, *, share: float, most: int | None, seed: int) -> list[int]:
    """Return the numbers of the examples to train on, ascending; a larger share has a smaller's.

    Of `most` examples, if there are more, a share is taken.
    """
    available = num_examples if most is None else min(num_examples, most)
    wanted = max(1, round(share * available))
    if wanted >= num_examples:
        return list(range(num_examples))
    order = np.random.default_rng([seed, 0]).permutation(num_examples)
    return sorted(order[:wanted].tolist())


def shuffle_epoch(
    lengths: Lengths, *, batch_size: int, max_tokens: int, min_steps: int, seed: int, epoch: int
) -> list[list[int]]:
    """Return an epoch's batches: all examples once, or so often that there are enough steps."""
    batches: list[list[int]] = []
    reading = 0
    while len(batches) < min_steps:
        batches += shuffle_batches(
            lengths,
            batch_size=batch_size,
            max_tokens=max_tokens,
            # A number of its own for each time that the data is read.
            seeds=(seed, 1 + epoch, reading) if reading else (seed, 1 + epoch),
        )
        reading += 1
    return batches


def shuffle_batches(
    lengths: Lengths, *, batch_size: int, max_tokens: int, seeds: Sequence[int]
) -> list[list[int]]:
    """Return all examples in batches of like length each, by their places."""
    random = np.random.default_rng(seeds)
    order = random.permutation(len(lengths))
    batches: list[list[int]] = []
    for start in range(0, len(order), batch_size * BATCHES_A_POOL):
        pool = order[start : start + batch_size * BATCHES_A_POOL]
        by_length = pool[np.argsort(lengths[pool], kind="stable")]
        batches += cut_batches(by_length.tolist(), lengths, batch_size, max_tokens)
    return [batches[place] for place in random.permutation(len(batches))]


def sort_batches(
    lengths: Sequence[int] | Lengths, *, batch_size: int, max_tokens: int
) -> list[list[int]]:
    """Return batches to predict on: the shortest examples first."""
    order = np.argsort(np.asarray(lengths), kind="stable")
    return list(cut_batches(order.tolist(), lengths, batch_size, max_tokens))


def cut_batches(
    order: Iterable[int],
    lengths: Sequence[int] | Lengths,
    batch_size: int,
    max_tokens: int,
) -> Iterator[list[int]]:
    """Cut examples, the shorter first, into batches that keep to both bounds."""
    batch: list[int] = []
    for place in order:
        is_full = len(batch) >= batch_size or (len(batch) + 1) * int(lengths[place]) > max_tokens
        if batch and is_full:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
