"""A lane computes at once when it is idle, and together what arrives while it is busy."""

import asyncio
import os
import sys
import threading
from dataclasses import dataclass

import pytest

from elmore.serve.lanes import Lane, lower_priority


@dataclass(eq=False)
class Item:
    name: str
    num_tokens: int = 10
    key: str | None = "same"


class Recorder:
    """Computes nothing; the first batch waits until it is let go."""

    def __init__(self, *, waits=True):
        self.batches = []
        self.gate = threading.Event()
        if not waits:
            self.gate.set()

    def __call__(self, works):
        self.gate.wait(10)
        self.batches.append([work.name for work in works])
        return [
            ValueError(work.name) if work.name == "bad" else [work.name.encode()] for work in works
        ]


def run(items, *, batch_tokens=100, leave=(), recorder=None):
    """Submit all items while the first one is being computed; return results and batches."""
    recorder = recorder or Recorder()
    reports = []

    async def talk():
        lane = Lane(recorder, batch_tokens=batch_tokens, on_batch=reports.append)
        assert lane.is_idle
        futures = [lane.submit(item) for item in items]
        assert not lane.is_idle
        for index in leave:
            futures[index].cancel()
        recorder.gate.set()
        results = await asyncio.gather(*futures, return_exceptions=True)
        while not lane.is_idle:
            await asyncio.sleep(0)
        lane.close()
        return results

    results = asyncio.run(talk())
    return results, recorder.batches, reports


def test_an_idle_lane_starts_the_first_work_alone_and_the_others_together():
    results, batches, reports = run([Item(name) for name in "abcd"])
    assert batches == [["a"], ["b", "c", "d"]]
    assert results == [[b"a"], [b"b"], [b"c"], [b"d"]]
    assert [(report.num_requests, report.num_tokens) for report in reports] == [(1, 10), (3, 30)]


def test_a_batch_is_bounded_in_tokens_but_has_at_least_one_work():
    items = [Item("a"), Item("b", 60), Item("c", 60), Item("d", 500), Item("e", 40)]
    _, batches, _ = run(items)
    assert batches == [["a"], ["b", "e"], ["c"], ["d"]]


def test_works_with_other_keys_are_computed_separately_and_in_order():
    items = [Item("a"), Item("b", key="x"), Item("c", key="y"), Item("d", key="x")]
    _, batches, _ = run(items)
    assert batches == [["a"], ["b", "d"], ["c"]]


def test_a_work_without_a_key_runs_alone():
    items = [Item("a"), Item("b", key=None), Item("c", key=None), Item("d")]
    _, batches, _ = run(items)
    assert batches == [["a"], ["b"], ["c"], ["d"]]


def test_batching_can_be_turned_off():
    _, batches, _ = run([Item(name) for name in "abc"], batch_tokens=1)
    assert batches == [["a"], ["b"], ["c"]]


def test_the_work_of_a_client_that_left_is_never_computed():
    results, batches, _ = run([Item(name) for name in "abc"], leave=[1])
    assert batches == [["a"], ["c"]]
    assert isinstance(results[1], asyncio.CancelledError)


def test_a_client_that_leaves_during_its_batch_harms_nobody():
    results, _, _ = run([Item(name) for name in "ab"], leave=[0])
    assert results[1] == [b"b"]


def test_an_error_reaches_only_its_own_request():
    results, _, _ = run([Item("a"), Item("bad"), Item("c")])
    assert isinstance(results[1], ValueError)
    assert results[2] == [b"c"]


def test_a_batch_that_fails_as_a_whole_does_not_stop_the_lane():
    class Failing(Recorder):
        def __call__(self, works):
            if super().__call__(works) and works[0].name == "b":
                raise MemoryError
            return [[b"fine"]] * len(works)

    results, _, _ = run([Item("a"), Item("b"), Item("c", key="y")], recorder=Failing())
    assert results[0] == results[2] == [b"fine"]
    assert isinstance(results[1], MemoryError)


def test_a_lane_has_one_thread():
    seen = set()

    def note(works):
        seen.add(threading.get_ident())
        return [[b""] for _ in works]

    run([Item(name, key=name) for name in "abcdef"], recorder=_Opened(note))
    assert len(seen) == 1
    assert threading.get_ident() not in seen


class _Opened:
    def __init__(self, call):
        self.gate = threading.Event()
        self.batches = []
        self._call = call

    def __call__(self, works):
        return self._call(works)


def test_starting_the_thread_early_runs_its_preparation():
    started = []
    lane = Lane(Recorder(), batch_tokens=1, start_thread=lambda: started.append("thread"))
    lane.start(lambda: started.append("first call"))
    lane.close()
    assert started == ["thread", "first call"]


def test_the_answers_of_a_large_batch_leave_room_for_other_events():
    async def submit():
        lane = Lane(Recorder(waits=False), batch_tokens=1000)
        first = lane.submit(Item("first"))
        others = [lane.submit(Item(str(number))) for number in range(50)]
        await first
        await others[0]
        num_answered = sum(other.done() for other in others)
        await asyncio.gather(*others)
        lane.close()
        return num_answered

    assert 1 <= asyncio.run(submit()) < 50


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priorities of their own")
def test_a_thread_with_a_lower_priority_passes_it_on_to_those_it_starts():
    found = []

    def read():
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    def call():
        lower_priority(2)
        read()
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    read()
    usual = found.pop()
    assert found == [min(usual + 2, 19)] * 2


@pytest.mark.parametrize("number", [1, 2, 50])
def test_every_request_is_answered_once(number):
    items = [Item(str(index), num_tokens=1 + index % 7) for index in range(number)]
    results, batches, _ = run(items, batch_tokens=20)
    assert results == [[str(index).encode()] for index in range(number)]
    assert sorted(name for batch in batches for name in batch) == sorted(map(str, range(number)))
