"""Batches of examples; shuffled batches depend only on the seed and the epoch."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Lengths = NDArray[np.int32]

# Examples are sorted by length within pools of this many batches. Larger pools have less padding,
# but examples of similar length meet more often.
BATCHES_PER_POOL = 50


def draw_examples(num_examples: int, *, share: float, most: int | None, seed: int) -> list[int]:
    """Return the indices of the examples to train on, ascending.

    `share` is relative to at most `most` examples. A larger share includes every smaller one.
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
    """Return an epoch's batches: all examples, repeated until there are at least `min_steps`."""
    batches: list[list[int]] = []
    repetition = 0
    while len(batches) < min_steps:
        batches += shuffle_batches(
            lengths,
            batch_size=batch_size,
            max_tokens=max_tokens,
            # Each repetition is shuffled differently.
            seeds=(seed, 1 + epoch, repetition) if repetition else (seed, 1 + epoch),
        )
        repetition += 1
    return batches


def shuffle_batches(
    lengths: Lengths, *, batch_size: int, max_tokens: int, seeds: Sequence[int]
) -> list[list[int]]:
    """Return the indices of all examples, in shuffled batches of similar length."""
    random = np.random.default_rng(seeds)
    order = random.permutation(len(lengths))
    batches: list[list[int]] = []
    for start in range(0, len(order), batch_size * BATCHES_PER_POOL):
        pool = order[start : start + batch_size * BATCHES_PER_POOL]
        by_length = pool[np.argsort(lengths[pool], kind="stable")]
        batches += cut_padded_batches(by_length.tolist(), lengths, batch_size, max_tokens)
    return [batches[index] for index in random.permutation(len(batches))]


def sort_batches(
    lengths: Sequence[int] | Lengths, *, batch_size: int, max_tokens: int
) -> list[list[int]]:
    """Return batches for prediction, the shortest examples first."""
    order = np.argsort(np.asarray(lengths), kind="stable")
    return list(cut_padded_batches(order.tolist(), lengths, batch_size, max_tokens))


def cut_padded_batches(
    order: Iterable[int],
    lengths: Sequence[int] | Lengths,
    batch_size: int,
    max_tokens: int,
) -> Iterator[list[int]]:
    """Cut examples, sorted by length, into batches that respect both limits."""
    batch: list[int] = []
    for index in order:
        is_full = len(batch) >= batch_size or (len(batch) + 1) * int(lengths[index]) > max_tokens
        if batch and is_full:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
