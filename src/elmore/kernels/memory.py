"""Memory for packed weights, and for training steps."""

import ctypes
import mmap
import sys

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


# From glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> None:
    """Do not return freed memory to the system: a training step needs what the last one freed.

    Otherwise the system takes back every large block and clears it, page by page, when it is
    needed again. That was a fifth of a step of the English model. Only glibc has such a setting.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)
