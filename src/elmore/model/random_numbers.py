"""Random numbers that depend only on a key of integers and a position.

A resumed run, and processes that share a batch, draw the same numbers as a single run.
"""

import hashlib

import numpy as np
import torch
from torch import Tensor

_WORDS_PER_BLOCK = 4  # Philox makes four 64-bit words at a time, and skips only multiples of four
_NUMBERS_PER_WORD = 4  # a 64-bit word gives four 16-bit numbers
_RANGE = 1 << 16


def make_generator(*key: int) -> np.random.Generator:
    """Return a generator seeded by the key.

    >>> make_generator(1, 2).random() == make_generator(1, 2).random()
    True
    """
    return np.random.Generator(_make_philox(key))


def draw_keep_mask(*key: int, shape: tuple[int, int], first_row: int, dropout: float) -> Tensor:
    """Return (rows, k) float32 dropout factors: 0, or the factor that keeps the mean at 1.

    Row r depends only on the key, on k and on `first_row + r`, so rows can be drawn in parts. The
    dropout rate is rounded to a multiple of 1/65536. If it is 0 all factors are 1; then it is
    cheaper not to call this.
    """
    num_rows, num_columns = shape
    threshold = round(dropout * _RANGE)
    if not 0 <= threshold < _RANGE:
        raise ValueError(f"dropout is {dropout}; give a number from 0 up to, but not including, 1")
    if threshold == 0:
        return torch.ones(shape)
    words_per_row = _WORDS_PER_BLOCK * -(-num_columns // (_WORDS_PER_BLOCK * _NUMBERS_PER_WORD))
    philox = _make_philox(key)
    philox.advance(first_row * words_per_row // _WORDS_PER_BLOCK)
    words = philox.random_raw(num_rows * words_per_row).reshape(num_rows, words_per_row)
    numbers = words.astype("<u8", copy=False).view("<u2")[:, :num_columns]
    kept = torch.from_numpy(numbers >= threshold)
    return kept.to(torch.float32).mul_(_RANGE / (_RANGE - threshold))


def _make_philox(key: tuple[int, ...]) -> np.random.Philox:
    # Hash the key, because similar keys must not give related streams. Different keys give
    # different strings.
    digest = hashlib.sha256(",".join(str(int(number)) for number in key).encode()).digest()
    return np.random.Philox(key=np.frombuffer(digest[:16], dtype="<u8").astype(np.uint64))
