"""Weights are packed one after another, with the bits of a model that is read as a whole."""

import json
import os
import subprocess
import sys
from pathlib import Path

import h5py
import pytest
import torch
from safetensors.torch import load_file, save_file

import elmore
from elmore.config import CharacterConfig, LSTMConfig, ModelConfig
from elmore.embed import embedder as embedder_module
from elmore.embed.embedder import Embedder
from elmore.kernels.library import find_kernel
from elmore.weights.bilm_tf import write_bilm_tf
from elmore.weights.elmo_model import new_model
from elmore.weights.unread_weights import UnreadWeights
from tests import tiny
from tests.weights import peer_files
from tests.weights.refusals import assert_refused

SENTENCES = [["the", "bank", "of", "a", "river"], ["a"]]
LARGEST_PEAK = 1.3  # times what remains; the original size has 1.2


def write_sources(folder: Path) -> dict[str, Path]:
    model = tiny.model()
    model.save_pretrained(folder / "f32")
    model.save_pretrained(folder / "f16", store="f16")
    (folder / "hdf5").mkdir()
    write_bilm_tf(model, folder / "hdf5" / "weights.hdf5")
    architecture = peer_files.make_architecture()
    weights = peer_files.make_many_langs(architecture)
    (folder / "many").mkdir()
    peer_files.write_many_langs_folder(folder / "many", architecture, *weights)
    return {name: folder / name for name in ("f32", "f16", "hdf5", "many")}


@pytest.mark.parametrize("kernel", [None, "torch"])
@pytest.mark.parametrize("precision", ["f32", "bf16", "int8"])
def test_loading_gives_the_bits_of_a_model_that_is_read_as_a_whole(
    kernel, precision, tmp_path, monkeypatch
):
    if kernel is not None:
        monkeypatch.setenv("ELMORE_KERNEL", kernel)
    for source in write_sources(tmp_path).values():
        model = elmore.load_model(source)
        loaded = elmore.load(source, precision=precision, layers="all")
        assert loaded.model.unread is None
        assert loaded.model.fingerprint() == model.fingerprint()
        wanted = Embedder(model, precision=precision, layers="all").embed(SENTENCES)
        for found, expected in zip(loaded.embed(SENTENCES), wanted, strict=True):
            assert found.tobytes() == expected.tobytes()
        assert loaded.load_model().fingerprint() == model.fingerprint()


def test_freed_memory_is_returned_before_each_weight_is_read(tmp_path, monkeypatch):
    tiny.model().save_pretrained(tmp_path)
    events: list[str] = []
    monkeypatch.setattr(embedder_module, "return_freed_memory", lambda: events.append("returned"))
    take = UnreadWeights.take
    monkeypatch.setattr(
        UnreadWeights, "take", lambda self, name: events.append(name) or take(self, name)
    )
    elmore.load(tmp_path)
    names = sorted(tiny.model().bilm.state_dict())
    assert sorted(events[1::2]) == names
    assert set(events[::2]) == {"returned"}


@pytest.mark.parametrize("name", ["backward_lm.0.bias", "token_encoder.projection.weight"])
def test_numbers_that_are_not_finite_are_refused_in_a_folder(name, tmp_path):
    tiny.model().save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors[name].view(-1)[-1] = torch.inf
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    assert_refused(lambda: elmore.load(tmp_path), f"{name}' has numbers that are not finite")


@pytest.mark.parametrize(
    "name", ["RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/W_0", "CNN_proj/W_proj", "CNN_high_1/b_carry"]
)
def test_numbers_that_are_not_finite_are_refused_in_hdf5(name, tmp_path):
    write_bilm_tf(tiny.model(), tmp_path / "weights.hdf5")
    with h5py.File(tmp_path / "weights.hdf5", "r+") as file:
        file[name][-1] = float("nan")
    assert_refused(lambda: elmore.load(tmp_path), f"{name}' has numbers that are not finite")


MEASURE = """
import gc, json, sys
from pathlib import Path
import elmore

def megabytes(name):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) / 1000

small, path, precision = sys.argv[1:]
elmore.load(small, precision=precision)  # imports what loading needs
gc.collect()
Path("/proc/self/clear_refs").write_text("5")  # resets the peak
before = megabytes("VmRSS")
loaded = elmore.load(path, precision=precision)
peak = megabytes("VmHWM") - before
gc.collect()
print(json.dumps([peak, megabytes("VmRSS") - before]))
"""


def write_medium(folder: Path) -> None:
    """A model of 28 million weights, in both formats."""
    config = ModelConfig(
        lstm=LSTMConfig(num_layers=2, cell_dim=2048, output_dim=256),
        characters=CharacterConfig(
            max_chars=50, embedding_dim=16, filters=((1, 256), (2, 768)), num_highway_layers=2
        ),
    )
    model = new_model(config, seed=0)
    model.save_pretrained(folder / "folder")
    (folder / "hdf5").mkdir()
    write_bilm_tf(model, folder / "hdf5" / "weights.hdf5")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="measured on Linux")
@pytest.mark.skipif(find_kernel() is None, reason="torch keeps all weights")
def test_the_peak_of_memory_is_hardly_more_than_what_remains(tmp_path):
    tiny.model().save_pretrained(tmp_path / "small")
    write_medium(tmp_path)
    for kind in ("folder", "hdf5"):
        for precision in ("f32", "bf16", "int8"):
            paths = [str(tmp_path / name) for name in ("small", kind)]
            done = subprocess.run(
                [sys.executable, "-c", MEASURE, *paths, precision],
                check=True,
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": "src"},
            )
            peak, remains = json.loads(done.stdout)
            assert remains > 20
            assert peak < LARGEST_PEAK * remains, f"{kind}, {precision}: {peak:.0f}, {remains:.0f}"
