import sys

import numpy as np
import pytest

from elmore.errors import ConfigError, DataError, ElmoreError, MissingExtraError
from elmore.explore.build_index import build_index
from elmore.explore.use_index import open_index
from tests.explore import indexes


@pytest.fixture(scope="module")
def embedder():
    return indexes.make_embedder()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    indexes.write_texts(tmp_path)
    (tmp_path / "long.txt").write_text(indexes.make_large_text())
    return tmp_path


def test_the_graph_finds_nearly_all_nearest_uses(folder, embedder):
    pytest.importorskip("usearch")
    index = indexes.make_index(folder, embedder, "long.txt")
    done = []
    index.build_graph(1, on_progress=done.append)
    assert done == [index.num_tokens]
    num_found = 0
    for number in range(0, index.num_tokens, 20):
        exact = index.nearest(number, 1, top=10)
        about = index.nearest(number, 1, top=10, approximate=True)
        assert len(about) == 10
        assert number not in {near.use.number for near in about}
        wanted = {near.use.number: near.similarity for near in exact}
        num_found += sum(near.similarity >= exact[-1].similarity - 1e-6 for near in about)
        for near in about:
            if near.use.number in wanted:
                assert near.similarity == pytest.approx(wanted[near.use.number], abs=1e-5)
    assert num_found >= 0.9 * 10 * len(range(0, index.num_tokens, 20))
    typed = index.typed_use(embedder, index.use(5).tokens, index.use(5).position)
    assert index.nearest(typed, 1, top=1, approximate=True)[0].similarity > 0.999


def test_a_graph_is_extended_after_text_was_added(folder, embedder):
    pytest.importorskip("usearch")
    indexes.make_index(folder, embedder, "book.txt").build_graph(2)
    build_index("long.txt", "index", model=embedder)
    index = open_index("index")
    with pytest.raises(DataError, match="because text was added since; build the graph again"):
        index.nearest(0, 2, approximate=True)
    index.build_graph(2)
    found = {near.use.source for near in index.nearest(0, 2, top=200, approximate=True)}
    assert found == {"long.txt", str(folder / "book.txt")}
    assert len(list((folder / "index").glob("*.usearch"))) == 1
    index.check()


def test_a_graph_of_some_words(folder, embedder):
    pytest.importorskip("usearch")
    index = indexes.make_index(folder, embedder, "long.txt", words=["bank", "river"])
    index.build_graph(1)
    use = index.uses("bank").uses[0]
    exact = {near.use.number for near in index.nearest(use, 1, top=5)}
    about = {near.use.number for near in index.nearest(use, 1, top=5, approximate=True)}
    assert len(exact & about) >= 4


def test_a_damaged_or_missing_graph_is_one_sentence(folder, embedder):
    pytest.importorskip("usearch")
    index = indexes.make_index(folder, embedder, "long.txt")
    with pytest.raises(DataError, match="has no graph of layer 1; build it with build_graph"):
        index.nearest(0, 1, approximate=True)
    with pytest.raises(ConfigError, match="layer 0 has one vector per word and needs no graph"):
        index.build_graph(0)
    index.build_graph(1)
    with pytest.raises(ConfigError, match="approximate search takes no word, source or tag"):
        index.nearest(0, 1, word="bank", approximate=True)
    paths = [next((folder / "index").glob("*.usearch")), folder / "index" / "layer1.graph.json"]
    generator = np.random.default_rng(0)
    for path in paths:
        whole = path.read_bytes()
        for _ in range(10):
            content = bytearray(whole)
            content[int(generator.integers(len(content)))] ^= int(generator.integers(1, 256))
            path.write_bytes(content)
            with pytest.raises(ElmoreError):
                open_index("index").nearest(0, 1, approximate=True)
        path.write_bytes(whole[:-5])
        with pytest.raises(ElmoreError):
            open_index("index").nearest(0, 1, approximate=True)
        path.write_bytes(whole)


def test_without_usearch_the_extra_is_named(folder, embedder, monkeypatch):
    index = indexes.make_index(folder, embedder, "long.txt")
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'elmore\[search\]'"):
        index.build_graph(1)


def test_the_command_builds_a_graph(folder, elmore_command):
    pytest.importorskip("usearch")
    assert elmore_command("index", "book.txt", "--out", "index", "--graph", "1").status == 0
    assert open_index("index").nearest(0, 1, approximate=True)
    assert elmore_command("index", "book.txt", "--out", "index", "--restart").status == 0
    assert not list((folder / "index").glob("*.usearch"))
    assert not list((folder / "index").glob("*.graph.json"))
