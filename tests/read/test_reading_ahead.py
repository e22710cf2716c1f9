"""With two threads, the next batches are read while the vectors of one are used."""

import gc
import threading
import weakref

import pytest
import torch

from elmore.embed.embedder import Embedder
from elmore.kernels import reading
from elmore.kernels.threads import Queues, reserve_queues
from elmore.model.packing import QueuedReading
from elmore.read.engine import MAX_AHEAD
from elmore.read.windows import BATCHES_IN_WINDOW, cut_windows
from elmore.text.batches import NUM_MARKERS
from tests import tiny
from tests.kernels.processes import run_python
from tests.lm.processes import needs_fork

SENTENCES = [[f"w{(n * k) % 11}" for k in range(n % 7)] for n in range(60)]
TOKENS_PER_BATCH = 8


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def embedder():
    made = Embedder(tiny.model(scale=0.4), tokens_per_batch=TOKENS_PER_BATCH)
    if made.kernel == "torch":
        pytest.skip("no native kernel")
    return made


@pytest.fixture
def started(monkeypatch):
    """List the readings that were started."""
    found = []
    result = QueuedReading.__init__

    def count(self, *arguments):
        found.append(self)
        result(self, *arguments)

    monkeypatch.setattr(QueuedReading, "__init__", count)
    return found


def bits(arrays):
    return [(array.shape, array.tobytes()) for array in arrays]


@pytest.mark.parametrize("layers", ["all", "average"])
def test_reading_ahead_changes_no_bit(two_threads, embedder, started, layers):
    found = bits(embedder.embed(SENTENCES, layers=layers))
    assert len(started) > 10
    torch.set_num_threads(1)
    started.clear()
    assert found == bits(embedder.embed(SENTENCES, layers=layers))
    assert not started


def test_states_come_in_the_order_of_the_sentences(two_threads, embedder):
    network = embedder._engine.reader
    batch = tiny.model().speller.batch([["a"], ["b", "c", "d"], ["e", "f"]])
    with torch.inference_mode():
        tokens = network.encode(batch.tokens)[batch.positions]
        wanted = network.contextualize(tokens, batch.lengths)
        with network.read_ahead() as start:
            found = start(tokens, batch.lengths, None).result()
    assert torch.equal(found.layers, wanted.layers)
    assert torch.equal(found.state.hidden, wanted.state.hidden)
    assert torch.equal(found.state.cell, wanted.state.cell)


def test_a_single_batch_is_read_in_the_callers_thread(two_threads, embedder, started):
    embedder.embed([["a", "b"], ["c"]])
    assert not started


def test_only_a_few_batches_are_read_ahead(two_threads, embedder, started):
    num_taken = 0

    def take():
        nonlocal num_taken
        for sentence in [["a", "b"]] * 1000:
            num_taken += 1
            yield sentence

    stream = embedder.stream(take())
    for number in range(20):
        next(stream)
        num_batches = (number + 1) * (2 + NUM_MARKERS) / TOKENS_PER_BATCH
        assert len(started) <= num_batches + BATCHES_IN_WINDOW + MAX_AHEAD + 1
        window = BATCHES_IN_WINDOW * TOKENS_PER_BATCH // (2 + NUM_MARKERS)
        assert num_taken <= number + 3 * window
    stream.close()


def test_an_error_in_the_text_comes_after_all_whole_windows(two_threads, embedder):
    def take():
        yield from SENTENCES
        raise OSError("no more")

    found = []
    with pytest.raises(OSError, match="no more"):
        found.extend(embedder.stream(take()))
    *whole, _ = cut_windows(SENTENCES, max_tokens=BATCHES_IN_WINDOW * TOKENS_PER_BATCH)
    num_wanted = sum(map(len, whole))
    assert bits(found) == bits(embedder.embed(SENTENCES[:num_wanted]))


def test_after_an_error_no_further_batch_starts(two_threads, embedder, started, monkeypatch):
    def fail(_):
        raise MemoryError

    monkeypatch.setattr(QueuedReading, "result", fail)
    with pytest.raises(MemoryError):
        embedder.embed(SENTENCES)
    assert len(started) <= MAX_AHEAD + 1


def test_an_error_in_a_later_batch_comes_after_the_windows_before(two_threads, embedder):
    find, num_found = embedder._engine.cache.find, 0

    def fail_late(sentences):
        nonlocal num_found
        num_found += 1
        if num_found > 2 * BATCHES_IN_WINDOW:
            raise MemoryError
        return find(sentences)

    embedder._engine.cache.find = fail_late
    pairs = [["a", "b"]] * 200
    in_window = BATCHES_IN_WINDOW * TOKENS_PER_BATCH // (2 + NUM_MARKERS)
    found = []
    with pytest.raises(MemoryError):
        found.extend(embedder.stream(pairs))
    assert len(found) == 2 * in_window


def test_after_an_error_nothing_keeps_the_text_alive(two_threads, embedder):
    class Text:
        def __iter__(self):
            yield from SENTENCES
            raise OSError("no more")

    text = Text()
    is_alive = weakref.ref(text)
    gc.disable()
    try:
        with pytest.raises(OSError, match="no more"):
            list(embedder.stream(text))
        del text
        assert is_alive() is None
    finally:
        gc.enable()


def test_with_one_thread_batches_are_prepared_once_and_text_is_taken_as_needed(
    embedder, started, monkeypatch
):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    find, num_found, num_taken = embedder._engine.cache.find, 0, 0

    def count(sentences):
        nonlocal num_found
        num_found += 1
        return find(sentences)

    def take():
        nonlocal num_taken
        for sentence in [["a", "b"]] * 100:
            num_taken += 1
            yield sentence

    embedder._engine.cache.find = count
    stream = embedder.stream(take())
    next(stream)
    window = BATCHES_IN_WINDOW * TOKENS_PER_BATCH // (2 + NUM_MARKERS)
    assert (num_taken, num_found, started) == (window, BATCHES_IN_WINDOW, [])
    assert len(list(stream)) == 99


def test_a_second_caller_reads_in_its_own_thread(two_threads, embedder, started):
    stream = embedder.stream([["a", "b"]] * 100)
    next(stream)
    started.clear()
    embedder.embed(SENTENCES)
    assert not started
    stream.close()
    embedder.embed(SENTENCES)
    assert started


def test_a_long_sentence_is_no_work_for_a_team_of_threads(two_threads, embedder, monkeypatch):
    wanted = bits(embedder.embed(SENTENCES))
    monkeypatch.setattr(reading, "MIN_TEAM_BYTES", 0)
    monkeypatch.setattr(reading, "MAX_TEAM_ROWS", 100)
    assert bits(embedder.embed(SENTENCES)) == wanted


def test_calls_run_in_the_order_of_their_queues_and_pass_errors_on():
    order = []

    def fail():
        raise MemoryError("of the second queue")

    first = Queues().start(lambda: order.append(1), lambda: order.append("other queue"))
    second = Queues().start(lambda: order.append(2), fail)
    with pytest.raises(MemoryError, match="second queue"):
        second.wait()
    first.wait()
    assert [item for item in order if isinstance(item, int)] == [1, 2]


def test_a_call_that_is_cancelled_in_time_never_runs():
    is_held, ran = threading.Event(), []
    held = Queues().start(is_held.wait)
    waiting = Queues().start(lambda: ran.append(1))
    waiting.cancel()
    is_held.set()
    held.wait()
    Queues().start(lambda: None).wait()  # a cancelled call would have run before it
    assert not ran


def test_queues_are_for_one_caller_and_for_several_threads(two_threads):
    with reserve_queues() as mine, reserve_queues() as other:
        assert mine is not None
        assert other is None
    torch.set_num_threads(1)
    with reserve_queues() as mine:
        assert mine is None


@needs_fork
@pytest.mark.slow
def test_a_forked_child_finishes_without_the_parents_threads():
    script = """
import os, signal, torch
torch.set_num_threads(2)
from elmore.embed.embedder import Embedder
from tests import tiny
embedder = Embedder(tiny.model(), tokens_per_batch=8)
assert embedder._engine.num_parallel == 1
sentences = [["a", "b", "c"]] * 100
wanted = [array.tobytes() for array in embedder.embed(sentences)]
for number in range(20):
    stream = embedder.stream(sentences)
    found = [next(stream).tobytes()]
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        if number % 2:
            stream.close()
            os._exit(0)
        os._exit(found + [array.tobytes() for array in stream] != wanted)
    assert os.waitpid(child, 0)[1] == 0
    assert found + [array.tobytes() for array in stream] == wanted
"""
    done = run_python(script)
    assert done.returncode == 0, done.stderr
