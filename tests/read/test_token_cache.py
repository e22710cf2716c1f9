import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from elmore.read.token_cache import TokenCache
from tests import tiny


def make(size):
    model = tiny.model()
    return model, TokenCache(model.bilm, model.speller, size=size)


def test_the_table_points_each_token_to_its_own_vector():
    model, cache = make(size=3)
    for sentences in ([["a", "b"]], [["c", "a", "d"]], [["b"], ["d", "e", "f"]], [["a"]]):
        batch = model.batch(sentences)
        wanted = model.bilm.token_encoder(batch.tokens.char_ids, None)[batch.positions]
        assert torch.equal(cache.find(sentences), wanted)


def test_the_table_stays_within_its_size_but_for_a_larger_batch():
    _, cache = make(size=10)
    for number in range(200):
        cache.find([[f"w{number}", "common"]])
    assert len(cache._vectors) <= 2 + 10
    cache.find([[f"v{number}" for number in range(600)]])
    assert len(cache._vectors) == 2 + 600


def test_the_least_recently_used_token_goes_first():
    _, cache = make(size=3)
    for token in ("a", "b", "c", "a", "d"):
        cache.find([[token]])
    assert list(cache._rows) == ["c", "a", "d"]


def test_each_token_is_encoded_once(monkeypatch):
    _, cache = make(size=100)
    spelled = []
    spell = cache._speller.spell
    monkeypatch.setattr(
        cache._speller, "spell", lambda tokens, **k: spelled.extend(tokens) or spell(tokens, **k)
    )
    cache.find([["a", "b", "a"], ["b"]])
    cache.find([["a", "c"]])
    assert sorted(spelled) == ["a", "b", "c"]


def test_clearing_takes_new_weights_into_account():
    model, cache = make(size=5)
    before = cache.find([["a"]])
    with torch.no_grad():
        model.bilm.token_encoder.projection.bias.add_(1.0)
    cache.clear()
    torch.testing.assert_close(cache.find([["a"]]), before + 1.0)


def test_threads_may_share_a_table():
    """Small enough that the threads keep throwing out each other's tokens."""
    model, cache = make(size=4)
    sentences = [[[f"w{(thread * 3 + n) % 20}" for n in range(9)]] for thread in range(4)]
    wanted = [TokenCache(model.bilm, model.speller, size=99).find(s) for s in sentences]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            for found, right in zip(pool.map(cache.find, sentences), wanted, strict=True):
                assert torch.equal(found, right)


def test_an_interruption_leaves_the_table_right(monkeypatch):
    _, cache = make(size=4)
    wanted = cache.find([["a", "b"]])
    encode = TokenCache._encode

    def interrupt(*arguments, **settings):
        monkeypatch.setattr(TokenCache, "_encode", encode)
        raise KeyboardInterrupt

    monkeypatch.setattr(TokenCache, "_encode", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cache.find([["c", "d", "e"]])
    assert torch.equal(cache.find([["a", "b"]]), wanted)
    _, other = make(size=4)
    assert torch.equal(cache.find([["e", "c"]]), other.find([["e", "c"]]))


def test_a_copy_is_a_table_of_its_own():
    _, cache = make(size=4)
    wanted = cache.find([["a"]])
    for copied in (copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        assert torch.equal(copied.find([["a"]]), wanted)


class LockOfAnotherThread:
    """What a fork finds while a thread has got the lock, but not yet the interpreter's lock.

    Python marks a lock as locked once the new owner runs again, so until then it looks free.
    """

    def locked(self):
        return False

    def __enter__(self):
        raise AssertionError("a forked child would wait here for a thread that it does not have")

    def __exit__(self, *exception):
        pass


def test_a_forked_child_never_waits_for_the_parents_lock():
    _, cache = make(size=4)
    wanted = cache.find([["a", "b"]])
    cache._lock = LockOfAnotherThread()
    cache.reset_after_fork()
    assert torch.equal(cache.find([["a", "b"]]), wanted)


def test_a_forked_child_starts_over_with_a_table_that_was_being_changed():
    _, cache = make(size=4)
    wanted = cache.find([["a", "b", "c"]])
    cache._lock.acquire()
    cache._rows["d"] = cache._rows["a"]  # half done by a thread that the child does not have
    cache.reset_after_fork()
    assert list(cache._rows) == []
    assert torch.equal(cache.find([["a", "b", "c"]]), wanted)


def test_a_forked_child_keeps_a_table_that_nobody_was_changing():
    _, cache = make(size=4)
    cache.find([["a", "b"]])
    cache.reset_after_fork()
    assert list(cache._rows) == ["a", "b"]
