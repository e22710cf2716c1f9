import os
import sys
import threading

import pytest

from elmore.kernels import helper
from elmore.kernels.helper import Helper, current_cpu

needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


@needs_linux
def test_a_helper_avoids_the_core_of_its_caller() -> None:
    cpus = os.sched_getaffinity(0)
    if len(cpus) == 1:
        pytest.skip("needs two cores")
    assistant = Helper()
    found: list[set[int]] = []
    for cpu in sorted(cpus):
        assistant.start(lambda: found.append(os.sched_getaffinity(0)), beside=cpu).result()
        assert found.pop() == cpus - {cpu}
    assert os.sched_getaffinity(0) == cpus


@needs_linux
def test_a_process_on_one_core_keeps_its_helper_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    ran: list[str] = []
    Helper().start(lambda: ran.append(threading.current_thread().name), beside=3).result()
    assert ran[0].startswith("elmore-helper")


@needs_linux
def test_a_system_that_forbids_it_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: int, cpus: set[int]) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    ran: list[int] = []
    Helper().start(lambda: ran.append(1), beside=min(os.sched_getaffinity(0))).result()
    assert ran == [1]


@needs_linux
def test_the_current_core_is_one_of_those_allowed() -> None:
    assert current_cpu() in os.sched_getaffinity(0)


def test_other_systems_have_no_current_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper, "_sched_getcpu", None)
    assert current_cpu() is None
