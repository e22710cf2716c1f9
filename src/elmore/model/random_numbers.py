"""Random numbers that depend only on what they are for: a key of whole numbers, and a place.

A run that goes on after a crash, and processes that share a batch, draw what one run would draw.
"""

import hashlib

import numpy as np
import torch
from torch import Tensor

_WORDS_PER_BLOCK = 4  # Philox makes 64-bit words four at a time, and can skip only whole fours
_NUMBERS_PER_WORD = 4  # a 64-bit word is read as four 16-bit numbers
_RANGE = 1 << 16


def make_generator(*key: int) -> np.random.Generator:
    """Return a generator that begins at the same place whenever the key is the same.

    >>> make_generator(1, 2).random() == make_generator(1, 2).random()
    True
    """
    return np.random.Generator(_make_philox(key))


def draw_keep_mask(*key: int, shape: tuple[int, int], first_row: int, dropout: float) -> Tensor:
    """Return (rows, k) float32 factors of dropout: 0, or what keeps the mean at 1.

    Row r depends on the key, on k and on `first_row + r` only, so that rows may be drawn in parts.
    The share dropped is `dropout` rounded to a multiple of 1/65536. Without dropout all are 1; it
    is cheaper not to ask.
    """
    num_rows, num_columns = shape
    threshold = round(dropout * _RANGE)
    if not 0 <= threshold < _RANGE:
        raise ValueError(f"dropout is {dropout}; give a number from 0 to less than 1")
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
    # Neighbouring keys must not give related streams, so the key is hashed; a text of the numbers
    # cannot be that of another key.
    digest = hashlib.sha256(",".join(str(int(number)) for number in key).encode()).digest()
    return np.random.Philox(key=np.frombuffer(digest[:16], dtype="<u8").astype(np.uint64))
