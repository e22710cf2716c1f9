"""Keep freed memory for the next step of a training, or return it to the system right away.

A step allocates the same hundreds of megabytes as the step before. By default the C library returns
large blocks when they are freed, and the system clears the new ones, page by page: a tenth of the
CPU time of a step.
"""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Options of glibc's mallopt.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
LARGEST = 2**31 - 1
# What glibc raises them to by itself in a program that frees large blocks. It stops doing so once
# an option is set. With its initial values, every array of 128 kB would go back to the system.
USUAL = {TRIM_THRESHOLD: 64 << 20, MMAP_THRESHOLD: 32 << 20}


@contextmanager
def keeping_freed_memory() -> Iterator[None]:
    """Keep freed memory within the block; does nothing without glibc."""
    library = _find_glibc()
    if library is None:
        yield
        return
    for option in (MMAP_THRESHOLD, TRIM_THRESHOLD):
        library.mallopt(option, LARGEST)
    try:
        yield
    finally:
        for option, threshold in USUAL.items():
            library.mallopt(option, threshold)
        library.malloc_trim(0)


def return_freed_memory() -> None:
    """Return what the C library keeps of freed blocks; does nothing without glibc."""
    library = _find_glibc()
    if library is not None:
        library.malloc_trim(0)


def _find_glibc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    has_options = hasattr(library, "gnu_get_libc_version") and hasattr(library, "mallopt")
    return library if has_options else None
