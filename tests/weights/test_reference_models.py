"""Models and vectors made by the other programs themselves; see `tests/tiny.py` for where."""

import json
import math
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from elmore.weights.bilm_tf import write_bilm_tf
from elmore.weights.bilm_tf_arrays import array_shapes
from elmore.weights.bilm_tf_options import make_options, read_options
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.loading import load_model
from tests import reference, tiny
from tests.weights.peer_files import largest_difference, read_all_arrays, run, single_thread

BILM_TF = tiny.FIXTURES / "bilm-tf" / "model"
MANY_LANGS = tiny.FIXTURES / "elmoformanylangs"
PUBLISHED_OPTIONS = tiny.FIXTURES / "published-options"
TOLERANCE = 2e-6

pytestmark = tiny.needs_fixtures


def bilm_tf_rows() -> list[list[list[str]]]:
    rows = json.loads((BILM_TF / "lm_embeddings_sentences.json").read_text())
    return [[sentence.split() for sentence in row] for row in rows]


def bilm_tf_vectors() -> list[list[np.ndarray]]:
    """Return the top layer (tokens, 2D) of sentence s of row r, as bilm-tf computed it."""
    vectors = []
    for row in range(3):
        with h5py.File(BILM_TF / f"lm_embeddings_{row}.hdf5") as file:
            vectors.append([np.concatenate(list(file[str(s)][...]), axis=1) for s in range(10)])
    return vectors


def top_layers_with_carried_state(model: ElmoModel) -> list[list[np.ndarray]]:
    rows = bilm_tf_rows()
    found: list[list[np.ndarray]] = [[] for _ in rows]
    state = None
    for place in range(10):
        batch = model.batch([row[place] for row in rows])
        with single_thread():
            output = model.bilm(batch, state)
        state = output.state
        for row, part in enumerate(output.layers[-1].split(batch.lengths.tolist())):
            found[row].append(part[1:-1].numpy())
    return found


def test_bilm_tf_gives_all_thirty_sentences_with_carried_state():
    found = top_layers_with_carried_state(load_model(BILM_TF / "lm_weights.hdf5"))
    expected = bilm_tf_vectors()
    assert sum(len(row) for row in found) == 30
    for ours, theirs in zip(found, expected, strict=True):
        assert largest_difference(ours, theirs) < TOLERANCE


def test_bilm_tf_gives_the_first_sentence_of_each_row_from_zero_state():
    model = load_model(BILM_TF / "lm_weights.hdf5")
    first = [row[0] for row in bilm_tf_rows()]
    found = [layers[-1] for layers in run(model, first, dtype=torch.float32)]
    assert largest_difference(found, [row[0] for row in bilm_tf_vectors()]) < TOLERANCE


def test_every_layer_of_bilm_tf_agrees_with_the_formulas():
    model = load_model(BILM_TF / "lm_weights.hdf5")
    options = json.loads((BILM_TF / "options.json").read_text())
    first = [row[0] for row in bilm_tf_rows()]
    expected = reference.bilm_tf_layers(
        read_all_arrays(BILM_TF / "lm_weights.hdf5"), options, [first], carry=False
    )
    assert largest_difference(run(model, first), expected[0]) < 1e-9


def test_bilm_tf_survives_the_way_to_a_folder_and_back(tmp_path):
    model = load_model(BILM_TF / "lm_weights.hdf5")
    model.save_pretrained(tmp_path / "folder")
    loaded = load_model(tmp_path / "folder")
    for ours, theirs in zip(top_layers_with_carried_state(loaded), bilm_tf_vectors(), strict=True):
        assert largest_difference(ours, theirs) < TOLERANCE
    write_bilm_tf(loaded, tmp_path / "back" / "weights.hdf5")
    ours = read_all_arrays(tmp_path / "back" / "weights.hdf5")
    theirs = read_all_arrays(BILM_TF / "lm_weights.hdf5")
    assert {name: array.tobytes() for name, array in ours.items()} == {
        name: array.tobytes() for name, array in theirs.items()
    }
    assert load_model(tmp_path / "back" / "weights.hdf5").fingerprint() == model.fingerprint()


def many_langs_difference(model: ElmoModel, folder: Path) -> float:
    sentences = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    with np.load(folder / "expected.npz") as file:
        expected = [file[str(place)] for place in range(len(sentences))]
    return largest_difference(run(model, sentences, dtype=torch.float32), expected)


@pytest.mark.parametrize("name", ["word_and_char", "char_only"])
def test_elmoformanylangs_gives_every_layer_of_every_sentence(name, tmp_path):
    model = load_model(MANY_LANGS / name)
    assert many_langs_difference(model, MANY_LANGS / name) < TOLERANCE
    model.save_pretrained(tmp_path / "folder")
    loaded = load_model(tmp_path / "folder")
    assert many_langs_difference(loaded, MANY_LANGS / name) < TOLERANCE
    assert loaded.fingerprint() == model.fingerprint()


@pytest.mark.parametrize(
    ("name", "millions"),
    [("elmo_2x1024_128_2048cnn_1xhighway", 13.6), ("elmo_2x4096_512_2048cnn_2xhighway", 93.6)],
)
def test_published_options_describe_the_published_number_of_weights(name, millions):
    options = json.loads((PUBLISHED_OPTIONS / f"{name}_options.json").read_text())
    config = read_options(options, name=name, num_words=None)
    shapes = array_shapes(config, is_single=False).values()
    assert round(sum(math.prod(shape) for shape in shapes) / 1e6, 1) == millions
    assert make_options(config) == {"bidirectional": True, **options}
