import numpy as np
import pytest

import elmore
from elmore.errors import ElmoreError
from elmore.explore.neighbors import nearest_pairs, nearest_to
from elmore.model.scalar_mix import ScalarMix
from elmore.text.files import read_text
from tests.explore import indexes


@pytest.fixture(scope="module")
def embedder():
    return indexes.make_embedder()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, embedder):
    folder = tmp_path_factory.mktemp("texts")
    (folder / "long.txt").write_text(indexes.make_large_text())
    indexes.make_index(folder, embedder, "long.txt")
    indexes.make_index(folder, embedder, "long.txt", out="top", layers="top")
    return folder


def read(folder):
    return [sentence.tokens for sentence in read_text(folder / "long.txt")]


def describe(found):
    return [(n.context.sentence, n.context.position, n.other.sentence) for n in found]


MIX = ScalarMix.from_weights([0.1, 0.4, 0.5])


@pytest.mark.parametrize("layers", ["top", "average", 0, 1, MIX], ids=str)
def test_an_index_gives_the_answers_of_its_text(folder, embedder, layers):
    wanted = nearest_pairs(embedder, "bank", read(folder), layers=layers, top=8)
    found = elmore.neighbors("bank", folder / "index", layers=layers, top=8)
    similarities = [neighbor.similarity for neighbor in wanted]
    np.testing.assert_allclose([n.similarity for n in found], similarities, atol=2e-3)
    query = ["the", "river", "bank"]
    wanted = nearest_to(embedder, "bank", read(folder), query=query, layers=layers, top=8)
    index = elmore.open_index(folder / "index")
    found = elmore.neighbors("bank", index, query=query, model=embedder, layers=layers, top=8)
    similarities = [neighbor.similarity for neighbor in wanted]
    np.testing.assert_allclose([n.similarity for n in found], similarities, atol=2e-3)
    if layers in ("top", 1):  # in the others, many uses are equally similar
        assert describe(found)[:3] == describe(wanted)[:3]
        assert found[0].context == wanted[0].context


def test_layers_that_are_not_stored_are_refused(folder):
    assert elmore.neighbors("bank", folder / "top", top=2)
    with pytest.raises(ElmoreError, match=r"the average needs all layers, but .* lacks 0, 1"):
        elmore.neighbors("bank", folder / "top", layers="average")
    with pytest.raises(ElmoreError, match=r"layer is 1, but .* has the layers 2"):
        elmore.neighbors("bank", folder / "top", layers=1)
    with pytest.raises(ElmoreError, match="one vector per token"):
        elmore.neighbors("bank", folder / "index", layers="all")
    normalizing = ScalarMix(num_layers=3, normalizes=True)
    with pytest.raises(ElmoreError, match="normalizes layers over whole sentences"):
        elmore.neighbors("bank", folder / "index", layers=normalizing)


def test_a_query_needs_the_model_of_the_index(folder):
    with pytest.raises(ElmoreError, match="was built with the model"):
        elmore.neighbors("bank", folder / "index", query="A bank.")
