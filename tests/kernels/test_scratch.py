from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from elmore.kernels import scratch
from elmore.kernels.scratch import borrow


def test_memory_is_reused_by_the_next_block_but_not_within_one() -> None:
    def run() -> None:
        with borrow() as take:
            first, second = take(1000), take(1000)
            assert (len(first), len(second)) == (1000, 1000)
            assert not np.shares_memory(first, second)
        with borrow() as take:
            again = take(900)
            assert np.shares_memory(again, first) or np.shares_memory(again, second)
            with borrow() as take_inside:
                assert not np.shares_memory(take_inside(900), again)

    in_new_thread(run)


def test_only_the_largest_pieces_are_kept() -> None:
    def run() -> None:
        with borrow() as take:
            for size in range(100, 1100, 100):
                take(size)
        assert sorted(map(len, scratch._kept.buffers)) == [700, 800, 900, 1000]

    in_new_thread(run)


def test_memory_is_returned_after_an_error() -> None:
    def run() -> None:
        with pytest.raises(ZeroDivisionError), borrow() as take:
            take(500 // (len(take(500)) - 500))
        assert list(map(len, scratch._kept.buffers)) == [500]

    in_new_thread(run)


def in_new_thread(work) -> None:  # type: ignore[no-untyped-def]
    """Threads keep memory of their own, so a new one has none."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
