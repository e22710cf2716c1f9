import errno
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from elmore.config import Precision
from elmore.embed import cache_space, layer_cache
from elmore.embed.cache_space import default_folder
from elmore.embed.embedder import Embedder
from elmore.embed.layer_cache import CachedLayers, LayerCache
from elmore.embed.layer_file import INDEX_BYTES, MAX_ABOUT_BYTES
from elmore.embed.layer_source import LiveLayers
from elmore.errors import ConfigError, DataError, ModelError
from tests import tiny

MODEL, OTHER_MODEL = tiny.model(), tiny.model(seed=1)
FINGERPRINT = MODEL.fingerprint()
TOKEN_BYTES = (3 * 10 - 5) * 2  # layers and their width, less half of the first, in half precision

FIRST = [["a", "bad", "cafe"], ["a"], ["bad", "a"], ["a", "bad", "cafe"]]
SECOND = [[f"{letter}{number}" for letter in "abc"] for number in range(8)]
THIRD = [[f"x{number}", "y"] for number in range(12)]


def load():
    # One sentence a window, so that a file is written in several steps.
    return Embedder(MODEL, tokens_per_batch=1)


def refuse_to_load():
    raise AssertionError("nothing was to be computed")


def open_layers(folder, sentences=FIRST, *, load=load, max_bytes=None, **settings):
    cache = LayerCache(folder, max_bytes=max_bytes)
    return cache.open(load, sentences, **{"fingerprint": FINGERPRINT, **settings})


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def find_file(folder):
    (path,) = folder.glob("*.layers")
    return path


def whole_bytes(sentences):
    """What a set may take; the JSON at its end is shorter than it could be."""
    distinct = {tuple(sentence) for sentence in sentences}
    num_tokens = sum(map(len, distinct))
    return num_tokens * TOKEN_BYTES + len(distinct) * INDEX_BYTES + MAX_ABOUT_BYTES


@pytest.mark.parametrize("precision", ["f16", "f32"])
def test_cached_layers_are_live_layers_to_the_bit(tmp_path, precision):
    cached = open_layers(tmp_path, [*FIRST, *SECOND], precision=precision)
    live = LiveLayers(load(), precision)
    assert (cached.num_layers, cached.layer_dim) == (live.num_layers, live.layer_dim)
    batch = [SECOND[3], FIRST[1], FIRST[0], SECOND[0]]
    assert torch.equal(cached.find(batch), live.find(batch))
    assert cached.find(batch).dtype == torch.float32


def test_nothing_is_loaded_once_the_file_is_there(tmp_path):
    wanted = open_layers(tmp_path).find(FIRST)
    again = open_layers(tmp_path, load=refuse_to_load)
    assert (again.num_layers, again.layer_dim) == (3, 10)
    assert torch.equal(again.find(FIRST), wanted)


def test_the_index_of_a_device_makes_no_other_file(tmp_path):
    open_layers(tmp_path, device="cuda:0")
    open_layers(tmp_path, device="cuda:1", load=refuse_to_load)


def test_order_repeats_and_kinds_of_list_make_no_other_set(tmp_path):
    open_layers(tmp_path)
    open_layers(tmp_path, iter([*map(tuple, reversed(FIRST)), ("a",)]), load=refuse_to_load)
    assert len(names(tmp_path)) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"sentences": FIRST[1:3]},
        {"sentences": [["a", "badcafe"], *FIRST[1:3]]},
        {"sentences": [["a bad", "cafe"], *FIRST[1:3]]},
        {"precision": "f32"},
        {"device": "cuda"},
        {"fingerprint": OTHER_MODEL.fingerprint(), "load": lambda: Embedder(OTHER_MODEL)},
        {"weights": Precision.INT8, "load": lambda: Embedder(MODEL, precision="int8")},
    ],
)
def test_all_that_a_layer_depends_on_makes_another_file(tmp_path, change):
    open_layers(tmp_path)
    loads = []
    sentences, change = change.get("sentences", FIRST), {**change}
    change.pop("sentences", None)
    make = change.pop("load", load)
    other = open_layers(tmp_path, sentences, load=lambda: loads.append(1) or make(), **change)
    assert len(loads) == 1
    assert len(names(tmp_path)) == 2
    wanted = LiveLayers(make(), change.get("precision", "f16")).find(sentences)
    assert torch.equal(other.find(sentences), wanted)
    assert len(loads) == 1


def test_a_distinct_sentence_is_embedded_once_and_takes_the_least_memory(tmp_path):
    embedder, embedded = load(), []
    windows = embedder.windows
    embedder.windows = lambda given, **choice: windows(map(note(embedded), given), **choice)
    cached = open_layers(tmp_path, FIRST * 3, load=lambda: embedder)
    assert embedded == [("a", "bad", "cafe"), ("a",), ("bad", "a")]
    assert cached.stored.num_sentences == 3
    size = find_file(tmp_path).stat().st_size
    assert size <= whole_bytes(FIRST)
    assert size > whole_bytes(FIRST) - MAX_ABOUT_BYTES


def note(seen):
    def pass_on(sentence):
        seen.append(tuple(sentence))
        return sentence

    return pass_on


def test_sentences_that_a_file_lacks_are_computed_among_those_that_it_has(tmp_path):
    cached = open_layers(tmp_path)
    batch = [SECOND[0], FIRST[0], ["new"], FIRST[1], ["new"]]
    assert torch.equal(cached.find(batch), LiveLayers(load()).find(batch))
    with pytest.raises(DataError, match="expected a list of tokens"):
        cached.find(["a bad cafe"])


def test_a_failure_half_way_leaves_nothing(tmp_path):
    embedder = load()
    windows = embedder.windows

    def fail(given, **choice):
        yield next(windows(given, **choice))
        raise KeyboardInterrupt

    embedder.windows = fail
    with pytest.raises(KeyboardInterrupt):
        open_layers(tmp_path, load=lambda: embedder)
    assert names(tmp_path) == []


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch):
    def fail(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(layer_cache.os, "fsync", fail)
    with pytest.raises(
        DataError, match=r"cannot write .*layers: the disk .* full; free some space"
    ):
        open_layers(tmp_path)
    assert names(tmp_path) == []


def test_an_impossible_folder_is_one_sentence(tmp_path):
    (tmp_path / "taken").touch()
    with pytest.raises(DataError, match="something else already exists there"):
        open_layers(tmp_path / "taken")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and locks")
@pytest.mark.parametrize("sentences", [FIRST, SECOND])
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path, sentences):
    """Whether the next process embeds the same sentences or others."""
    child = os.fork()
    if child == 0:
        embedder = load()
        windows = embedder.windows

        def stall(given, **choice):
            yield next(windows(given, **choice))
            (tmp_path / "stalled").touch()
            time.sleep(600)

        embedder.windows = stall
        open_layers(tmp_path, load=lambda: embedder)
        os._exit(1)
    try:
        while not (tmp_path / "stalled").exists():
            time.sleep(0.01)
        (part,) = tmp_path.glob("*.part")
        if sentences is not FIRST:  # a live process keeps its part
            open_layers(tmp_path, THIRD)
            assert part.exists()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    (tmp_path / "stalled").unlink()
    cached = open_layers(tmp_path, sentences)
    assert torch.equal(cached.find(sentences), LiveLayers(load()).find(sentences))
    assert {Path(name).suffix for name in names(tmp_path)} == {".layers"}


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks")
def test_of_two_that_want_the_same_one_embeds_and_the_other_waits(tmp_path, monkeypatch):
    monkeypatch.setattr(layer_cache, "WAIT_SECONDS", 0.01)
    is_loading, is_waiting = threading.Event(), threading.Event()
    said, results = [], []

    def load_slowly():
        is_loading.set()
        assert is_waiting.wait(60)
        return load()

    def hear(text):
        said.append(text)
        is_waiting.set()

    first = threading.Thread(target=lambda: results.append(open_layers(tmp_path, load=load_slowly)))
    first.start()
    assert is_loading.wait(60)
    second = open_layers(tmp_path, load=refuse_to_load, on_progress=hear)
    first.join()
    assert set(said) == {"waiting for another process that is embedding the same sentences"}
    assert torch.equal(second.find(FIRST), results[0].find(FIRST))
    assert names(tmp_path) == [find_file(tmp_path).name]


def test_the_least_recently_used_file_makes_room(tmp_path):
    files = {}
    for number, sentences in enumerate((FIRST, SECOND)):
        known = set(tmp_path.glob("*"))
        open_layers(tmp_path, sentences)
        (files[number],) = set(tmp_path.glob("*")) - known
        os.utime(files[number], (number, number))  # SECOND was used later
    open_layers(tmp_path, FIRST)  # and now FIRST
    limit = whole_bytes(FIRST) + whole_bytes(THIRD)
    open_layers(tmp_path, THIRD, max_bytes=limit)
    assert files[0].exists()
    assert not files[1].exists()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= limit


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks")
def test_a_file_that_is_open_stays_and_the_others_make_do(tmp_path):
    held = open_layers(tmp_path, SECOND)
    path = find_file(tmp_path)
    limit = path.stat().st_size + MAX_ABOUT_BYTES + 4 * (2 * TOKEN_BYTES + INDEX_BYTES)
    partial = open_layers(tmp_path, THIRD, max_bytes=limit)
    assert path.exists()
    assert partial.stored.num_sentences == 4
    assert torch.equal(partial.find(THIRD), LiveLayers(load()).find(THIRD))
    assert torch.equal(held.find(SECOND), LiveLayers(load()).find(SECOND))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= limit
    del partial
    assert open_layers(tmp_path, THIRD, max_bytes=limit).stored.num_sentences == 4
    del held
    # What nobody has open goes, or every epoch would compute what is missing.
    whole = open_layers(tmp_path, THIRD, max_bytes=limit)
    assert whole.stored.num_sentences == len(THIRD)
    assert not path.exists()
    open_layers(tmp_path, THIRD, load=refuse_to_load, max_bytes=limit)


def test_what_is_being_written_keeps_its_room(tmp_path):
    limit = whole_bytes(FIRST) + whole_bytes(THIRD) // 2
    sizes = []

    def note(_text):
        (part,) = tmp_path.glob("*.part")
        sizes.append(part.stat().st_size)

    open_layers(tmp_path, FIRST, max_bytes=limit, on_progress=note)
    assert sizes
    assert min(sizes) >= find_file(tmp_path).stat().st_size - MAX_ABOUT_BYTES


def test_without_room_all_is_computed_and_nothing_written(tmp_path):
    cached = open_layers(tmp_path, max_bytes=0)
    assert cached.stored is None
    assert (cached.num_layers, cached.layer_dim) == (3, 10)
    assert torch.equal(cached.find(FIRST), LiveLayers(load()).find(FIRST))
    assert names(tmp_path) == []


def test_a_third_of_the_disk_may_be_used_by_default(tmp_path, monkeypatch):
    room = whole_bytes(FIRST)
    usage = cache_space.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(cache_space.shutil, "disk_usage", lambda _: usage._replace(free=3 * room))
    assert open_layers(tmp_path).stored.is_whole
    monkeypatch.setattr(
        cache_space.shutil, "disk_usage", lambda _: usage._replace(free=3 * room - 300)
    )
    find_file(tmp_path).unlink()
    assert not open_layers(tmp_path).stored.is_whole


def test_a_damaged_file_is_written_again(tmp_path):
    open_layers(tmp_path)
    path = find_file(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    assert torch.equal(open_layers(tmp_path).find(FIRST), LiveLayers(load()).find(FIRST))
    open_layers(tmp_path, load=refuse_to_load)


def test_another_model_than_the_one_asked_for_is_refused(tmp_path):
    with pytest.raises(ModelError, match=f"loaded biLM is {FINGERPRINT[:12]}.* trained with"):
        open_layers(tmp_path, fingerprint="f" * 64)
    with pytest.raises(ModelError, match=r"in int8, but layers of .* in f32 are needed"):
        open_layers(tmp_path, load=lambda: Embedder(MODEL, precision="int8"))
    assert names(tmp_path) == []


def test_impossible_settings_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="precision is 'f8'"):
        open_layers(tmp_path, precision="f8")
    with pytest.raises(ConfigError, match="max_bytes is -1"):
        LayerCache(tmp_path, max_bytes=-1)


def test_progress_reports_tokens(tmp_path):
    said = []
    open_layers(tmp_path, on_progress=said.append)
    assert said == ["embedding, 3 of 6 tokens", "embedding, 6 of 6 tokens"]
    open_layers(tmp_path, on_progress=said.append)
    assert len(said) == 2


def test_no_sentences_are_accepted(tmp_path):
    cached = open_layers(tmp_path, [])
    assert torch.equal(cached.find([["a"]]), LiveLayers(load()).find([["a"]]))


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("ELMORE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert default_folder() == tmp_path / ".cache" / "elmore" / "layers"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert default_folder() == tmp_path / "Library" / "Caches" / "elmore" / "layers"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_folder() == tmp_path / "xdg" / "elmore" / "layers"
    monkeypatch.setenv("ELMORE_CACHE", str(tmp_path / "own"))
    assert default_folder() == tmp_path / "own" / "layers"
    assert LayerCache().folder == default_folder()


def test_layers_of_nothing_stored_are_the_model_s():
    cached = CachedLayers(None, lambda: LiveLayers(load()))
    assert torch.equal(cached.find(FIRST), LiveLayers(load()).find(FIRST))
