"""Embedders go to other processes and other machines; what is pickled depends on no kernel."""

import copy
import multiprocessing
import pickle
import shutil
from concurrent.futures import ProcessPoolExecutor

import huggingface_hub
import numpy as np
import pytest
import torch

import elmore
from elmore.embed.embedder import Embedder
from elmore.errors import ModelError
from elmore.kernels.library import describe_kernel
from elmore.model.scalar_mix import ScalarMix
from elmore.weights import loading
from tests import tiny
from tests.kernels import variants
from tests.weights import peer_files

SENTENCES = [["the", "bank", "of", "a", "river"], ["a"], []]


@pytest.fixture
def folder(tmp_path):
    tiny.model(scale=0.4).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def bits(embedder, **options):
    return [array.tobytes() for array in embedder.embed(SENTENCES, **options)]


def send(embedder):
    return pickle.loads(pickle.dumps(embedder))


@pytest.mark.parametrize("precision", ["f32", "bf16", "int8"])
def test_a_loaded_embedder_is_pickled_as_its_path_and_settings(folder, precision):
    settings = {
        "state": "document",
        "layers": ScalarMix.from_weights([0.2, 0.3, 0.5]),
        "language": "zh",
        "tokens_per_batch": 7,
        "cache_size": 3,
        "max_sentence_tokens": 11,
        "precision": precision,
    }
    embedder = elmore.load(folder, **settings)
    pickled = pickle.dumps(embedder)
    num_weight_bytes = (folder / "model.safetensors").stat().st_size
    assert len(pickled) < 4000 < num_weight_bytes
    received = pickle.loads(pickled)
    assert bits(received) == bits(embedder)
    assert (received.state, received.language, received.precision) == ("document", "zh", precision)
    assert len(pickle.dumps(received)) == len(pickled)
    with pytest.raises(elmore.ElmoreError, match="max_sentence_tokens = 11"):
        received.embed([["a"] * 12])


@pytest.mark.parametrize("is_loaded", [True, False])
@pytest.mark.parametrize(("here", "there"), [("avx2", "torch"), ("torch", "avx2")])
def test_a_pickle_made_under_one_kernel_is_read_under_another(folder, is_loaded, here, there):
    def make():
        return elmore.load(folder) if is_loaded else Embedder(tiny.model(scale=0.4))

    with variants.using(here):
        pickled = pickle.dumps(make())
        wanted_here = bits(make())
        assert bits(pickle.loads(pickled)) == wanted_here
    with variants.using(there):
        assert describe_kernel() == there
        assert bits(pickle.loads(pickled)) == bits(make())


def test_an_embedder_of_a_model_in_memory_is_pickled_with_its_weights():
    model = tiny.model(tiny.word_and_char_config())
    with torch.no_grad():
        model.bilm.initial_cell.fill_(0.5)
    embedder = Embedder(model, layers="top")
    assert bits(send(embedder)) == bits(embedder)


def test_weights_that_were_changed_after_loading_are_pickled_with_the_embedder(folder):
    with variants.using("torch"):
        embedder = elmore.load(folder)
        before = bits(embedder)
        with torch.no_grad():
            embedder.model.bilm.initial_cell.fill_(0.5)
        assert bits(send(embedder)) == bits(embedder) != before


def test_the_model_that_comes_with_elmore_is_found_wherever_elmore_is(tmp_path, monkeypatch):
    embedder = elmore.load()
    pickled = pickle.dumps(embedder)
    moved = tmp_path / "elsewhere"
    shutil.copytree(loading.DEFAULT_MODEL, moved)
    monkeypatch.setattr(loading, "DEFAULT_MODEL", moved)
    assert bits(pickle.loads(pickled)) == bits(embedder)
    assert str(tiny.TRAINED_MODEL).encode() not in pickled


def test_relative_paths_hold_in_another_working_folder(tmp_path, monkeypatch):
    options = peer_files.make_options()
    weights_path, options_path = peer_files.write_bilm_tf_files(
        tmp_path, options, peer_files.make_arrays(options)
    )
    (tmp_path / "apart").mkdir()
    options_path.rename(tmp_path / "apart" / "settings.json")
    monkeypatch.chdir(tmp_path)
    embedder = elmore.load(weights_path.name, options="apart/settings.json")
    pickled = pickle.dumps(embedder)
    monkeypatch.chdir(tmp_path / "apart")
    assert bits(pickle.loads(pickled)) == bits(embedder)


def test_a_model_of_the_hub_is_pinned_to_its_commit(tmp_path, monkeypatch):
    cache = tmp_path / "hub" / "models--owner--name" / "snapshots"
    asked = []

    def fetch(hub_id, *, revision="main", **_):
        asked.append((hub_id, revision))
        commit = "1" * 40 if revision == "main" else revision
        tiny.model(seed=int(commit[0])).save_pretrained(cache / commit)
        return str(cache / commit)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    embedder = elmore.load("owner/name")
    pickled = pickle.dumps(embedder)
    assert bits(pickle.loads(pickled)) == bits(embedder)
    assert asked == [("owner/name", "main")]  # what lies in the cache needs no network
    shutil.rmtree(cache)
    assert bits(pickle.loads(pickled)) == bits(embedder)
    assert asked[1:] == [("owner/name", "1" * 40)]


def test_files_that_are_gone_or_changed_are_named(folder):
    pickled = pickle.dumps(elmore.load(folder))
    tiny.model(seed=1).save_pretrained(folder)
    with pytest.raises(ModelError, match=f"{folder} has changed since"):
        pickle.loads(pickled)
    shutil.rmtree(folder)
    with pytest.raises(ModelError, match=rf"loaded from {folder}.*no model at"):
        pickle.loads(pickled)


def test_weights_that_were_given_up_by_hand_cannot_be_pickled():
    embedder = Embedder(tiny.model())
    if not embedder.has_own_weights:
        pytest.skip("torch computes here, with the model's own weights")
    embedder.model.release_weights()
    with pytest.raises(ModelError, match=r"elmore\.load"):
        pickle.dumps(embedder)


def test_a_pickled_stream_continues_where_it_was(folder):
    embedder = elmore.load(folder, state="stream")
    embedder.embed([["a", "b"]])
    received = send(embedder)
    assert bits(received) == bits(embedder)
    received.reset_state()
    assert bits(received) != bits(embedder)


def test_copies_need_no_files(folder):
    embedder = elmore.load(folder, state="stream")
    embedder.embed([["a", "b"]])
    shutil.rmtree(folder)
    deep, shallow = copy.deepcopy(embedder), copy.copy(embedder)
    first = bits(embedder)
    assert bits(deep) == first  # it has its own place in the text
    shallow.layers = "top"
    assert embedder.layers == "average"
    assert np.isfinite(shallow.embed([["a"]])[0]).all()


@pytest.mark.slow
def test_a_spawned_process_embeds_with_the_same_bits(folder):
    embedders = [elmore.load(folder), Embedder(tiny.model(scale=0.4))]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        for embedder in embedders:
            found = pool.submit(embedder.embed, SENTENCES).result(timeout=120)
            assert [array.tobytes() for array in found] == bits(embedder)
