import resource
import sys

import numpy as np
import pytest

from elmore.jobs import freed_memory
from elmore.jobs.freed_memory import keeping_freed_memory, return_freed_memory


class Library:
    def __init__(self) -> None:
        self.calls: list[tuple[int, ...]] = []

    def mallopt(self, option: int, value: int) -> None:
        self.calls.append((option, value))

    def malloc_trim(self, padding: int) -> None:
        self.calls.append((padding,))


def test_the_options_are_restored_even_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    monkeypatch.setattr(freed_memory, "_find_glibc", lambda: library)

    def fail() -> None:
        with keeping_freed_memory():
            assert library.calls == [(-3, 2**31 - 1), (-1, 2**31 - 1)]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert library.calls[2:] == [(-1, 64 << 20), (-3, 32 << 20), (0,)]


def test_freed_memory_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    monkeypatch.setattr(freed_memory, "_find_glibc", lambda: library)
    return_freed_memory()
    assert library.calls == [(0,)]


def test_nothing_happens_without_glibc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freed_memory, "_find_glibc", lambda: None)
    return_freed_memory()
    with keeping_freed_memory():
        pass


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs glibc")
def test_memory_is_not_cleared_by_the_system_again() -> None:
    if freed_memory._find_glibc() is None:
        pytest.skip("needs glibc")

    def count_faults() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        np.ones(16 << 20, np.uint8)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    with keeping_freed_memory():
        count_faults()
        assert count_faults() < 100  # of 4,096 pages
