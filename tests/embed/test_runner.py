"""How batches are cut and run changes no vector, and leaves nothing running."""

import threading
import time

import pytest

from elmore.embed.layer_choice import LayerChoice
from elmore.embed.runner import Runner
from elmore.embed.token_cache import TokenCache
from elmore.model.bilm import BiLM
from elmore.model.scalar_mix import ScalarMix
from tests import tiny

SENTENCES = [[f"w{(n * k) % 11}" for k in range(n % 7)] for n in range(50)]


@pytest.fixture(scope="module")
def model():
    return tiny.model(scale=0.4)


def make(model, *, policy="reset", **settings):
    cache = TokenCache(model.bilm.token_encoder, model.speller, size=8)
    settings = {"tokens_per_batch": 20, "max_sentence_tokens": 100, **settings}
    return Runner(model.bilm, cache, policy=policy, **settings)


def run(runner, *, mix="all", rows=3):
    return list(runner.windows(SENTENCES, LayerChoice(mix, num_layers=3), rows=rows))


def batch_threads():
    return [thread for thread in threading.enumerate() if "elmore-batch" in thread.name]


@pytest.mark.parametrize("mix", ["all", "average", ScalarMix(num_layers=3, normalizes=True)])
@pytest.mark.parametrize("policy", ["reset", "document", "stream"])
@pytest.mark.parametrize("settings", [{"num_parallel": 3}, {"max_rows": 2}])
def test_how_batches_are_run_changes_no_bit(model, policy, settings, mix):
    wanted = run(make(model, policy=policy), mix=mix)
    found = run(make(model, policy=policy, **settings), mix=mix)
    assert [window.sentences for window in found] == [window.sentences for window in wanted]
    for left, right in zip(found, wanted, strict=True):
        for vectors, others in zip(left.vectors, right.vectors, strict=True):
            assert vectors.tobytes() == others.tobytes()
            assert vectors.shape == others.shape
        if right.state is not None:
            assert left.state.hidden.equal(right.state.hidden)
            assert left.state.cell.equal(right.state.cell)
    assert batch_threads() == []


def test_batches_run_at_the_same_time(model, monkeypatch):
    meeting = threading.Barrier(2, timeout=10)
    contextualize = BiLM.contextualize

    def meet(*arguments):
        meeting.wait()
        return contextualize(*arguments)

    monkeypatch.setattr(BiLM, "contextualize", meet)
    sentences = [["a"] * 10, ["b"] * 10]  # a batch each
    runner = make(model, tokens_per_batch=12, num_parallel=2)
    (window,) = runner.windows(sentences, LayerChoice("top", num_layers=3))
    assert [len(vectors) for vectors in window.vectors] == [10, 10]


def test_an_error_in_a_batch_comes_out_and_no_further_batch_begins(model, monkeypatch):
    begun = []

    def fail(self, tokens, *_):
        begun.append(len(tokens))
        if len(begun) > 1:
            time.sleep(0.3)
        raise MemoryError(len(begun))

    monkeypatch.setattr(BiLM, "contextualize", fail)
    with pytest.raises(MemoryError):
        run(make(model, num_parallel=2))
    assert len(begun) <= 4  # of eight in the window
    assert batch_threads() == []


def test_leaving_early_ends_the_threads(model):
    windows = make(model, num_parallel=2).windows(SENTENCES, LayerChoice("top", num_layers=3))
    next(windows)
    assert batch_threads()
    windows.close()
    assert batch_threads() == []


def test_a_sentence_kept_keeps_nothing_else_alive(model):
    for window in run(make(model)):
        assert all(vectors.base is None for vectors in window.vectors)
