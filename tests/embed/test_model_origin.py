"""Where an embedder's model came from, as seen from the embedder."""

import copy
import pickle
import tarfile

import numpy as np
import pytest
import torch

import elmore
from elmore.embed.embedder import Embedder
from elmore.errors import ModelError
from tests import tiny

TEXT = [[word] for word in "abcdefghijklmnopqrstuvwxyz"] * 4


@pytest.fixture
def folder(tmp_path):
    embedder = Embedder(tiny.model())
    embedder.fit_similarity(TEXT)
    embedder.save(tmp_path / "model")
    return tmp_path / "model"


def test_changed_weights_stay_changed_when_they_are_moved(folder, monkeypatch):
    monkeypatch.setenv("ELMORE_KERNEL", "torch")  # which keeps the weights
    embedder = elmore.load(folder)
    assert embedder.find_path() == str(folder)
    with torch.no_grad():
        embedder.model.bilm.initial_cell += 1
    for moved in (embedder, embedder.to("cpu")):
        with pytest.raises(ModelError, match="was changed after it was loaded"):
            moved.find_path()
    changed = pickle.loads(pickle.dumps(embedder))
    assert np.array_equal(changed.embed("a b"), embedder.embed("a b"))
    assert not np.array_equal(changed.embed("a b"), elmore.load(folder).embed("a b"))


def test_moving_a_copy_leaves_the_original(folder):
    embedder = elmore.load(folder)
    copied = copy.copy(embedder).to("cpu")
    assert copied.model is not embedder.model
    assert copied.find_path() == embedder.find_path() == str(folder)


def test_what_is_stored_for_similarity_is_read_from_an_archive(folder, tmp_path):
    with tarfile.open(tmp_path / "model.tar.gz", "w:gz") as archive:
        archive.add(folder, arcname="model")
    packed, plain = (elmore.load(path) for path in (tmp_path / "model.tar.gz", folder))
    expected = plain.sentence_vectors(["a b", "c"], pool="similarity")
    assert np.array_equal(packed.sentence_vectors(["a b", "c"], pool="similarity"), expected)
