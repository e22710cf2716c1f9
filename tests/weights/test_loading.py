"""One function loads every kind of model, by what a path holds."""

import json
import os
from dataclasses import replace

import pytest

from elmore.config import About
from elmore.errors import ModelError
from elmore.weights.describe import describe_model
from elmore.weights.loading import load_model
from tests import tiny
from tests.weights import peer_files
from tests.weights.peer_files import make_architecture, make_arrays, make_many_langs, make_options


def write_files(folder, *, weights="lm_weights.hdf5", options="options.json"):
    paths = peer_files.write_bilm_tf_files(folder, make_options(), make_arrays(make_options()))
    paths[0].rename(folder / weights)
    paths[1].rename(folder / options)
    return folder / weights


@pytest.mark.parametrize(
    ("weights", "options"),
    [
        ("lm_weights.hdf5", "options.json"),
        ("elmo_2x4096_weights.hdf5", "elmo_2x4096_options.json"),
        ("model.h5", "settings.json"),
        ("MODEL.HDF5", "options.json"),
    ],
)
def test_options_are_found_next_to_weights_under_their_usual_names(weights, options, tmp_path):
    path = write_files(tmp_path, weights=weights, options=options)
    (tmp_path / "other.json").write_text("[1, 2]")
    (tmp_path / "large.json").write_bytes(b" " * (2 << 20))
    for source in (path, str(path), tmp_path):
        assert load_model(source).config.lstm.cell_dim == 6


def test_options_of_the_same_name_come_before_options_json(tmp_path):
    path = write_files(tmp_path, weights="a_weights.hdf5", options="a_options.json")
    (tmp_path / "options.json").write_text(json.dumps(make_options(lstm={"dim": 99})))
    assert load_model(path).config.lstm.cell_dim == 6


def test_missing_or_doubtful_options_are_asked_for(tmp_path):
    path = write_files(tmp_path, options="a.json")
    (tmp_path / "b.json").write_text(json.dumps(make_options()))
    with pytest.raises(ModelError, match=r"expected one options file .* got 2; .*--options"):
        load_model(path)
    assert load_model(path, options=tmp_path / "a.json").config.lstm.cell_dim == 6
    for name in ("a.json", "b.json"):
        (tmp_path / name).unlink()
    with pytest.raises(ModelError, match=r"expected one options file .* got 0; .*--options"):
        load_model(path)


def test_a_folder_of_elmoformanylangs_is_recognized(tmp_path):
    architecture = make_architecture()
    peer_files.write_many_langs_folder(tmp_path, architecture, *make_many_langs(architecture))
    assert load_model(tmp_path).config.about.source == "ELMoForManyLangs"


def test_hdf5_weights_need_no_suffix(tmp_path):
    named = load_model(write_files(tmp_path)).fingerprint()
    (tmp_path / "lm_weights.hdf5").rename(tmp_path / "3f4c5d.77a1")  # as in AllenNLP's cache
    assert load_model(tmp_path / "3f4c5d.77a1").fingerprint() == named


def test_what_holds_no_model_is_refused(tmp_path):
    with pytest.raises(ModelError, match="0 HDF5 files"):
        load_model(tmp_path)
    (tmp_path / "a.hdf5").touch()
    (tmp_path / "b.hdf5").touch()
    with pytest.raises(ModelError, match="2 HDF5 files"):
        load_model(tmp_path)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ModelError, match="is not a model"):
        load_model(tmp_path / "notes.txt")
    os.mkfifo(tmp_path / "pipe.hdf5")
    with pytest.raises(ModelError, match="neither a file nor a folder"):
        load_model(tmp_path / "pipe.hdf5")


@pytest.mark.parametrize("name", ["options", "token_embeddings", "vocabulary", "softmax"])
def test_files_a_model_folder_has_no_use_for_are_not_silently_ignored(name, tmp_path):
    tiny.model().save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="with weights of bilm-tf only"):
        load_model(tmp_path, **{name: tmp_path / "x"})


def test_a_link_to_a_model_is_followed(tmp_path):
    tiny.model().save_pretrained(tmp_path / "model")
    (tmp_path / "link").symlink_to(tmp_path / "model")
    assert load_model(tmp_path / "link").fingerprint() == tiny.model().fingerprint()


def test_a_description_can_be_written_as_json_and_counts_every_weight(tmp_path):
    model = tiny.model(replace(tiny.byte_config(), about=About(is_trained=False)))
    facts = describe_model(model)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["parameters"] == sum(weight.numel() for weight in model.bilm.parameters())
    assert facts["memory_bytes"] == 4 * facts["parameters"]
    assert facts["initial_state"] == "zeros"
    assert "random" in str(facts["trained_on"])
    model.bilm.initial_cell[0, 0, 0] = 1
    assert describe_model(model)["initial_state"] == "rest state"
