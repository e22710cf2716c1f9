"""Collect garbage when nobody waits for an answer.

A request that waits holds some two hundred objects in frames and closures. With a thousand of them,
each full collection stops every thread for a tenth of a second and finds nothing, because finished
requests leave no cycles behind. So only the young generations are collected at any time.
"""

import asyncio
import gc
import time
from collections.abc import Callable

# Above all counts of collections: the oldest generation is never collected automatically.
_NEVER = 1 << 30
_CHECK_SECONDS = 5.0
_MAX_SECONDS = 60.0


def spare_loaded_objects() -> None:
    """Exempt what has been loaded, and leave full collections to `collect_when_idle`.

    Otherwise the garbage collector looks at all objects of torch and of the models again and again,
    and no request is answered for half a second.
    """
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _NEVER)


async def collect_when_idle(
    is_idle: Callable[[], bool],
    *,
    check_seconds: float = _CHECK_SECONDS,
    max_seconds: float = _MAX_SECONDS,
) -> None:
    """Collect all garbage every few seconds, but only when idle or after `max_seconds` of work."""
    collected = time.monotonic()
    while True:
        await asyncio.sleep(check_seconds)
        has_aged = gc.get_count()[2] > 0  # something has reached the oldest generation
        if has_aged and (is_idle() or time.monotonic() - collected > max_seconds):
            gc.collect()
            collected = time.monotonic()
