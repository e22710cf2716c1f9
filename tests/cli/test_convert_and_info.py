import json

import h5py
import pytest

import elmore
from elmore.weights.loading import load_model
from tests import tiny
from tests.weights import peer_files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    tiny.model(scale=0.4).save_pretrained(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_model_goes_to_bilm_tf_and_back(folder, elmore_command):
    result = elmore_command(
        "convert", "model/", "--to", "bilm-tf", "--out", "weights.hdf5", "--json"
    )
    assert result.json["written"] == ["weights.hdf5", "options.json"]
    with h5py.File("weights.hdf5") as file:
        assert file["char_embed"].shape == (261, 3)
    assert json.loads((folder / "options.json").read_text())["char_cnn"]["n_characters"] == 262
    elmore_command("convert", "weights.hdf5", "--options", "options.json", "--out", "back/")
    assert load_model("back").fingerprint() == load_model("model").fingerprint()


def test_a_model_may_be_converted_again_into_its_folder(folder, elmore_command):
    for _ in range(2):
        assert elmore_command("convert", "model/", "--out", "copy/").status == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.hdf5", "--out", "x"), "no model at 'none.hdf5'"),
        (("model", "--out", "."), "holds other files"),
        (("words", "--to", "bilm-tf", "--out", "w.hdf5"), "this model has both"),
        (("model",), "Missing option"),
        (("model", "--to", "bilm-tf", "--out", "w.txt"), "ends in .hdf5 or .h5"),
    ],
)
def test_a_mistake_is_one_sentence_and_status_two(folder, elmore_command, arguments, message):
    tiny.model(tiny.word_and_char_config()).save_pretrained(folder / "words")
    before = sorted(folder.iterdir())
    result = elmore_command("convert", *arguments)
    assert (result.status, result.out) == (2, "")
    assert message in " ".join(result.err.split())
    assert sorted(folder.iterdir()) == before


def test_info_tells_sizes(folder, elmore_command):
    facts = elmore_command("info", "model", "--json").json
    assert facts["parameters"] == tiny.num_weights(tiny.byte_config())
    assert facts["memory_bytes"] == 4 * facts["parameters"]
    assert (facts["layers"], facts["vector_dim"], facts["residuals"]) == (3, 10, True)
    shown = elmore_command("info", "model").out
    assert f"{facts['parameters']:,}" in shown
    assert facts["hash"] in shown.replace("\n", "").replace(" ", "")


def test_the_version_is_told(elmore_command):
    result = elmore_command("--version")
    assert (result.status, result.out.strip()) == (0, elmore.__version__)


def test_what_was_assumed_about_a_model_is_said(folder, elmore_command):
    architecture = peer_files.make_architecture(encoder={"cell_clip": 3, "proj_clip": 3})
    weights = peer_files.make_many_langs(architecture)
    peer_files.write_many_langs_folder(
        folder / "many", architecture, *weights, has_architecture=False
    )
    assert "no architecture file" in elmore_command("convert", "many", "--out", "new").err


def test_info_of_the_default_model_says_that_it_is_untrained(elmore_command):
    assert "random" in elmore_command("info").out
