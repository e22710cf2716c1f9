"""Full collections wait until nobody waits for an answer."""

import asyncio
import gc
import time
import weakref

import pytest

from elmore.serve.garbage import collect_when_idle, spare_loaded_objects


@pytest.fixture(autouse=True)
def _restored():
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


class Cycle:
    def __init__(self):
        self.me = self


def make_aged_garbage():
    """A cycle in the oldest generation that nothing refers to any more."""
    cycle = Cycle()
    gc.collect(1)
    gc.collect(1)
    return weakref.ref(cycle)


def test_no_work_of_requests_starts_a_full_collection():
    spare_loaded_objects()
    assert gc.get_freeze_count() > 0
    before = gc.get_stats()[2]["collections"]
    kept = [[Cycle()] for _ in range(60_000)]
    assert len(kept) == 60_000
    assert gc.get_stats()[2]["collections"] == before
    assert gc.get_stats()[1]["collections"] > 0


def collect_for(seconds, **how):
    """Whether old garbage is collected within some time."""
    garbage = make_aged_garbage()
    assert garbage() is not None

    async def run():
        task = asyncio.create_task(collect_when_idle(check_seconds=0.01, **how))
        ended = time.monotonic() + seconds
        while garbage() is not None and time.monotonic() < ended:
            await asyncio.sleep(0.01)
        task.cancel()
        return garbage() is None

    return asyncio.run(run())


@pytest.mark.slow
def test_old_garbage_is_collected_when_idle():
    assert collect_for(5, is_idle=lambda: True)


@pytest.mark.slow
def test_a_busy_server_collects_only_after_a_long_time():
    spare_loaded_objects()
    assert not collect_for(0.1, is_idle=lambda: False, max_seconds=60)
    assert collect_for(5, is_idle=lambda: False, max_seconds=0.05)


@pytest.mark.slow
def test_an_idle_server_without_new_objects_collects_nothing():
    spare_loaded_objects()
    gc.collect()
    before = gc.get_stats()[2]["collections"]

    async def run():
        task = asyncio.create_task(collect_when_idle(lambda: True, check_seconds=0.002))
        await asyncio.sleep(0.05)
        task.cancel()

    asyncio.run(run())
    assert gc.get_stats()[2]["collections"] == before
