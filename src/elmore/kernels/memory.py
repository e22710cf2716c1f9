"""Memory for packed weights."""

import mmap

import numpy as np
from numpy.typing import NDArray

LARGE_PAGE = 2 << 20


def allocate(num_bytes: int) -> NDArray[np.uint8]:
    """Return memory, in huge pages if the system has them, because weights are read in full."""
    if num_bytes < LARGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(num_bytes, np.uint8)
    # Python's default is memory that forked processes share, which also gets no huge pages.
    memory = mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)
