"""Memory for packed weights that are needed for one call, kept by each thread for the next call.

Packing is fast, but fresh memory is not: the system clears it, page by page, when it is first
written.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from elmore.kernels.memory import allocate

Take = Callable[[int], NDArray[np.uint8]]

# The packed weights of one direction of a layer, forward or backward, are three.
MAX_KEPT = 4


class _Kept(threading.local):
    def __init__(self) -> None:
        self.buffers: list[NDArray[np.uint8]] = []


_kept = _Kept()


@contextmanager
def borrow() -> Iterator[Take]:
    """Give a function that returns memory of some size, valid until the end of the block."""
    taken: list[NDArray[np.uint8]] = []

    def take(num_bytes: int) -> NDArray[np.uint8]:
        fitting = [buffer for buffer in _kept.buffers if len(buffer) >= num_bytes]
        if fitting:
            found = min(fitting, key=len)
            _kept.buffers = [buffer for buffer in _kept.buffers if buffer is not found]
        else:
            found = allocate(num_bytes)
        taken.append(found)
        return found[:num_bytes]

    try:
        yield take
    finally:
        largest_first = sorted([*_kept.buffers, *taken], key=len, reverse=True)
        _kept.buffers = largest_first[:MAX_KEPT]
