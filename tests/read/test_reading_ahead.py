"""With two threads, the next batches are read while the vectors of one are used."""

import threading

import pytest
import torch

from elmore.embed.embedder import Embedder
from elmore.kernels.threads import Started
from elmore.model.packing import StartedReading
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
    result = StartedReading.__init__

    def count(self, *arguments):
        found.append(self)
        result(self, *arguments)

    monkeypatch.setattr(StartedReading, "__init__", count)
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
        found = network.start(tokens, batch.lengths).result()
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

    monkeypatch.setattr(StartedReading, "result", fail)
    with pytest.raises(MemoryError):
        embedder.embed(SENTENCES)
    assert len(started) <= MAX_AHEAD + 2


def test_lanes_run_one_call_after_another_and_pass_errors_on():
    order = []

    def fail():
        raise MemoryError("of the second lane")

    first = Started(lambda: order.append(1), lambda: order.append("other lane"))
    second = Started(lambda: order.append(2), fail)
    with pytest.raises(MemoryError, match="second lane"):
        second.wait()
    first.wait()
    assert [item for item in order if isinstance(item, int)] == [1, 2]


def test_a_call_that_is_cancelled_in_time_never_runs():
    is_held, ran = threading.Event(), []
    held = Started(is_held.wait)
    waiting = Started(lambda: ran.append(1))
    waiting.cancel()
    is_held.set()
    held.wait()
    Started(lambda: None).wait()  # in the same lane, so the cancelled one would have run before
    assert not ran


@needs_fork
@pytest.mark.slow
def test_a_forked_child_reads_on_without_the_parents_lanes():
    script = """
import os, signal, torch
torch.set_num_threads(2)
from elmore.embed.embedder import Embedder
from tests import tiny
embedder = Embedder(tiny.model(), tokens_per_batch=8)
assert embedder._engine.num_parallel == 1
sentences = [["a", "b", "c"]] * 100
wanted = [array.tobytes() for array in embedder.embed(sentences)]
for _ in range(20):
    stream = embedder.stream(sentences)
    found = [next(stream).tobytes()]
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(found + [array.tobytes() for array in stream] != wanted)
    assert os.waitpid(child, 0)[1] == 0
    assert found + [array.tobytes() for array in stream] == wanted
"""
    done = run_python(script)
    assert done.returncode == 0, done.stderr
