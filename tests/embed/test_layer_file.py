import sys

import numpy as np
import pytest

from elmore.embed import layer_file
from elmore.embed.embedder import Embedder
from elmore.embed.layer_file import (
    INDEX_BYTES,
    MAX_ABOUT_BYTES,
    FileWriter,
    count_token_bytes,
    digest_sentence,
    map_file,
)
from elmore.embed.layer_source import LiveLayers
from elmore.errors import DataError
from elmore.files.atomic import hold_lock
from tests import tiny

MODEL = tiny.model()
# 21 tokens, so that the layers do not end where an index may begin.
SENTENCES = [
    ["a", "bad", "cafe"],
    ["a"],
    ["bad"],
    *([f"{letter}{number}" for letter in "ab"] for number in range(8)),
]


def make_source(precision="f16"):
    return LiveLayers(Embedder(MODEL), precision)


def write(folder, *, source=None, num_more=0):
    """Write a file that lacks so many of the sentences wanted."""
    source = source or make_source()
    path = folder / "some.layers"
    with path.open("wb") as file:
        writer = FileWriter(file, source)
        for tokens, layers in zip(
            SENTENCES, source.embedder.embed(SENTENCES, layers="all"), strict=True
        ):
            writer.add(tokens, layers)
        writer.finish(num_wanted=len(SENTENCES) + num_more, whole_bytes=12345)
    return path


@pytest.mark.parametrize("precision", ["f16", "f32"])
def test_what_was_written_is_read_to_the_bit(tmp_path, precision):
    source = make_source(precision)
    stored = map_file(write(tmp_path, source=source))
    assert (stored.num_layers, stored.layer_dim) == (source.num_layers, source.layer_dim)
    for tokens, wanted in zip(SENTENCES, source.compute(SENTENCES), strict=True):
        found = stored.read(tuple(tokens))
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_a_sentence_that_was_not_written_is_not_there(tmp_path):
    stored = map_file(write(tmp_path))
    for tokens in (["new"], ["abad", "cafe"], ["a", "bad"], []):
        assert stored.read(tokens) is None
    with pytest.raises(DataError, match="expected a list of tokens"):
        stored.read("a bad cafe")


def test_a_file_says_whether_it_has_all_that_was_wanted(tmp_path):
    for num_more, is_whole in ((0, True), (1, False)):
        stored = map_file(write(tmp_path, num_more=num_more))
        assert (stored.is_whole, stored.whole_bytes) == (is_whole, 12345)
        assert stored.num_sentences == len(SENTENCES)


@pytest.mark.parametrize("precision", ["f16", "f32"])
def test_a_file_takes_what_can_be_counted_before_it_is_written(tmp_path, precision):
    source = make_source(precision)
    size = write(tmp_path, source=source).stat().st_size
    num_tokens = sum(map(len, SENTENCES))
    least = num_tokens * count_token_bytes(source) + len(SENTENCES) * INDEX_BYTES
    assert least < size <= least + MAX_ABOUT_BYTES


def test_an_index_is_sorted_aligned_and_mapped_not_read(tmp_path):
    stored = map_file(write(tmp_path))
    assert not stored._index["high"].flags.owndata
    assert stored._index["high"].flags.aligned
    assert (np.diff(stored._index["high"].astype(object)) > 0).all()


def test_digests_with_the_same_prefix_are_distinguished(tmp_path, monkeypatch):
    monkeypatch.setattr(
        layer_file, "digest_sentence", lambda tokens: bytes(8) + digest_sentence(tokens)[8:]
    )
    source = make_source()
    stored = map_file(write(tmp_path, source=source))
    for tokens, wanted in zip(SENTENCES, source.compute(SENTENCES), strict=True):
        np.testing.assert_array_equal(stored.read(tokens), wanted)
    assert stored.read(["new"]) is None


def test_digests_depend_on_where_tokens_end():
    alike = [["a", "bc"], ["ab", "c"], ["abc"], ["a", "b", "c"], ["a bc"], ["a", "bc", ""]]
    assert len({digest_sentence(tokens) for tokens in alike}) == len(alike)
    assert digest_sentence(("a", "bc")) == digest_sentence(["a", "bc"])


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:7],
        lambda content: content[:-1],
        lambda content: content[100:],
        lambda content: content[:-1] + b"?",
        lambda content: bytes(len(content)),
        lambda content: content.replace(b'"format": 1', b'"format": 2'),
        lambda content: content.replace(b'"format": 1', b'"former": 1'),
    ],
)
def test_a_damaged_file_is_none(tmp_path, damage):
    path = write(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    assert map_file(path) is None


def test_no_file_is_none_and_what_cannot_be_read_is_one_sentence(tmp_path):
    assert map_file(tmp_path / "none.layers") is None
    assert map_file(write(tmp_path) / "below.layers") is None
    with pytest.raises(DataError, match=r"cannot read .*; delete it, or set ELMORE_CACHE"):
        map_file(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks")
def test_a_mapped_file_is_locked_and_one_that_is_being_removed_is_none(tmp_path):
    path = write(tmp_path)
    release = hold_lock(path)  # as who removes it does
    assert map_file(path) is None
    release()
    stored = map_file(path)
    with pytest.raises(DataError):
        hold_lock(path)
    assert stored.read(["a"]) is not None
    del stored
    hold_lock(path)()


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks")
def test_a_file_that_was_replaced_before_it_was_locked_is_none(tmp_path, monkeypatch):
    path, other = write(tmp_path), tmp_path / "other"
    other.touch()
    monkeypatch.setattr(layer_file.os, "fstat", lambda _: other.stat())
    assert map_file(path) is None
