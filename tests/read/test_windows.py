"""How batches are cut and run changes no vector, and leaves nothing running."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmore.config import StatePolicy
from elmore.embed.layer_choice import LayerChoice
from elmore.model.bilm import BiLM
from elmore.model.scalar_mix import ScalarMix
from elmore.read.engine import Engine
from elmore.read.token_cache import TokenCache
from elmore.read.windows import WindowedReading, chain_documents, cut_windows
from tests import tiny

SENTENCES = [[f"w{(n * k) % 11}" for k in range(n % 7)] for n in range(50)]


@pytest.fixture(scope="module")
def model():
    return tiny.model(scale=0.4)


def make(model, *, policy="reset", layers="all", **settings):
    cache = TokenCache(model.bilm, model.speller, size=8)
    choice = LayerChoice(layers, num_layers=3)
    return WindowedReading(
        Engine(model.bilm, cache, **{"tokens_per_batch": 20, **settings}),
        choice.cut,
        make_empty=lambda: choice.make_empty(model.bilm),
        policy=StatePolicy(policy),
        max_sentence_tokens=100,
    )


def run(reading):
    return list(reading.read(SENTENCES, rows=3))


def all_of(windows, name):
    return [item for window in windows for item in getattr(window, name)]


def batch_threads():
    return [thread for thread in threading.enumerate() if "elmore-batch" in thread.name]


@pytest.mark.parametrize("layers", ["all", "average", ScalarMix(num_layers=3, normalizes=True)])
@pytest.mark.parametrize("policy", ["reset", "document", "stream"])
@pytest.mark.parametrize("settings", [{"num_parallel": 3}, {"tokens_per_batch": 7}])
def test_how_batches_are_run_changes_no_bit(model, policy, settings, layers):
    wanted = run(make(model, policy=policy, layers=layers))
    found = run(make(model, policy=policy, layers=layers, **settings))
    assert all_of(found, "sentences") == all_of(wanted, "sentences")
    for vectors, others in zip(all_of(found, "vectors"), all_of(wanted, "vectors"), strict=True):
        assert vectors.tobytes() == others.tobytes()
        assert vectors.shape == others.shape
    if wanted[-1].state is not None:
        assert found[-1].state.hidden.equal(wanted[-1].state.hidden)
        assert found[-1].state.cell.equal(wanted[-1].state.cell)


def test_batches_run_at_the_same_time(model, monkeypatch):
    meeting = threading.Barrier(2, timeout=10)
    contextualize = BiLM.contextualize

    def meet(*arguments):
        meeting.wait()
        return contextualize(*arguments)

    monkeypatch.setattr(BiLM, "contextualize", meet)
    sentences = [["a"] * 10, ["b"] * 10]  # a batch each
    (window,) = make(model, layers="top", tokens_per_batch=12, num_parallel=2).read(sentences)
    assert [len(vectors) for vectors in window.vectors] == [10, 10]


def test_an_error_in_a_batch_is_raised_and_no_further_batch_starts(model, monkeypatch):
    started = []

    def fail(self, tokens, *_):
        started.append(len(tokens))
        if len(started) > 1:
            time.sleep(0.3)
        raise MemoryError(len(started))

    monkeypatch.setattr(BiLM, "contextualize", fail)
    with pytest.raises(MemoryError):
        run(make(model, num_parallel=2))
    assert len(started) <= 4  # of eight in the window


@pytest.mark.slow
def test_threads_are_started_once_and_serve_every_call(model):
    run(make(model, num_parallel=2))
    threads = batch_threads()
    for _ in range(3):
        run(make(model, num_parallel=2))
        windows = make(model, num_parallel=2).read(SENTENCES)
        next(windows)
        windows.close()  # leaving early is no reason to start others
    assert threads
    assert batch_threads() == threads


def test_a_sentence_kept_keeps_nothing_else_alive(model):
    for window in run(make(model)):
        assert all(vectors.base is None for vectors in window.vectors)


@given(st.lists(st.integers(1, 30), max_size=40), st.integers(1, 50), st.integers(1, 4))
def test_windows_keep_order_and_groups(lengths, max_tokens, multiple_of):
    sentences = [["a"] * length for length in lengths]
    windows = list(cut_windows(sentences, max_tokens=max_tokens, multiple_of=multiple_of))
    assert [sentence for window in windows for sentence in window] == sentences
    assert all(len(window) % multiple_of == 0 for window in windows[:-1])


def test_documents_end_at_empty_sentences():
    assert chain_documents([[], ["a"], [], [], ["b"], ["c"]]) == [[], [1], [], [4, 5]]
