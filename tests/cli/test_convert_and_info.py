import json
from dataclasses import replace

import h5py
import huggingface_hub
import numpy as np
import pytest

import elmore
from elmore.config import WEIGHTS_ON_DISK, About
from elmore.lm.language_model import load_language_model
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.loading import load_model
from elmore.weights.model_folder import find_store
from elmore.wording import format_bytes
from tests import tiny
from tests.lm.slow_language_model import WORDS, make_language_model
from tests.weights import peer_files

SOFTMAX_FILES = ["softmax.json", "softmax.safetensors", "softmax_words.txt"]


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
        (
            ("model", "--to", "bilm-tf", "--out", "w.hdf5", "--store", "f16"),
            "bilm-tf files cannot store f16",
        ),
        (("model", "--out", "x", "--store", "f8"), "'f8' is not one of"),
        (("model", "--out", "x", "--options", "options.json"), "is a complete model"),
    ],
)
def test_a_mistake_is_one_sentence_and_status_two(folder, elmore_command, arguments, message):
    tiny.model(tiny.word_and_char_config()).save_pretrained(folder / "words")
    before = sorted(folder.iterdir())
    result = elmore_command("convert", *arguments)
    assert (result.status, result.out) == (2, "")
    assert message in " ".join(result.err.split())
    assert sorted(folder.iterdir()) == before


# The softmax, and half precision.


@pytest.fixture
def predicting(folder):
    """A folder with a model `lm` that has a softmax, and a text."""
    make_language_model().save(folder / "lm", run={"steps": 7})
    (folder / "text.txt").write_text("the cat sat on the mat .\n")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("store", list(WEIGHTS_ON_DISK))
def test_the_softmax_goes_along_in_every_store(store, predicting, elmore_command):
    result = elmore_command("convert", "lm", "--out", "new", "--store", store, "--json")
    assert result.err == ""
    assert {f"new/{name}" for name in SOFTMAX_FILES} < set(result.json["written"])
    for name in ("model", "softmax"):
        assert find_store(predicting / "new" / f"{name}.safetensors") == store
    loaded = load_language_model("new")
    assert (loaded.words, loaded.run) == (WORDS, {"steps": 7})
    is_same = loaded.elmo.fingerprint() == make_language_model().elmo.fingerprint()
    assert is_same == (store == "f32")
    measured = [
        elmore_command("evaluate", "text.txt", "--model", name, "--json").json["perplexity"]
        for name in ("lm", "new")
    ]
    assert measured[1] == pytest.approx(measured[0], rel=0.05)
    elmore_command("convert", "new", "--out", "again", "--store", store)
    for path in (predicting / "new").iterdir():
        assert (predicting / "again" / path.name).read_bytes() == path.read_bytes()


def test_the_softmax_alone_is_stored_in_int8(predicting, elmore_command):
    command = ("convert", "lm", "--out", "new", "--store", "f16", "--store-softmax", "int8")
    assert elmore_command(*command).status == 0
    facts = elmore_command("info", "new", "--json").json
    assert (facts["stored"], facts["softmax_stored"], facts["softmax_fits"]) == (
        "f16",
        "int8",
        True,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lm", "--no-softmax"), "no effect where the LM head is left out"),
        (("lm", "--to", "bilm-tf"), "no effect where the LM head is left out"),
        (("model",), "model has no LM head that could be stored as int8"),
        (("lm", "--store", "int8"), "'int8' is not one of f32, f16, bf16"),
    ],
)
def test_int8_is_refused_where_it_has_no_effect(predicting, elmore_command, arguments, message):
    result = elmore_command("convert", *arguments, "--out", "new", "--store-softmax", "int8")
    assert (result.status, result.out) == (2, "")
    assert message in " ".join(result.err.replace("│", " ").split())
    assert not (predicting / "new").exists()


def test_what_similarity_needs_goes_along(folder, elmore_command):
    embedder = elmore.load(folder / "model")
    embedder.fit_similarity([[word] for word in "abcdefghijklmnopqrstuvwxyz"])
    embedder.save(folder / "similar")
    for command in (("--store", "f16"), ("--no-softmax",), ("--from-zeros",)):
        assert elmore_command("convert", "similar", "--out", "new", *command).status == 0
        assert elmore_command("info", "new", "--json").json["has_similarity"]
        found = elmore.load(folder / "new").sentence_vectors(["ab", "c"], pool="similarity")
        expected = embedder.sentence_vectors(["ab", "c"], pool="similarity")
        assert np.allclose(found, expected, atol=0.05)
    assert elmore_command("convert", "model", "--out", "new").status == 0  # which has none
    assert "similarity.json" not in peer_files.names(folder / "new")
    assert not elmore_command("info", "new", "--json").json["has_similarity"]


def test_from_zeros_the_softmax_still_belongs_to_its_weights(predicting, elmore_command):
    assert elmore_command("convert", "lm", "--out", "new", "--from-zeros").status == 0
    loaded = load_language_model("new")
    assert not loaded.elmo.bilm.initial_cell.any()


@pytest.mark.slow
def test_the_softmax_can_be_left_out_also_where_one_was(predicting, elmore_command):
    elmore_command("convert", "lm", "--out", "new")
    assert (predicting / "new" / "softmax.json").exists()
    result = elmore_command("convert", "lm", "--out", "new", "--no-softmax")
    assert (result.status, result.err.count("note")) == (0, 0)
    assert peer_files.names(predicting / "new") == ["README.md", "config.json", "model.safetensors"]
    assert load_model("new").fingerprint() == load_model("lm").fingerprint()
    elmore_command("convert", "lm", "--out", "new")
    elmore_command("convert", "model", "--out", "new")  # which has none
    assert "softmax.json" not in peer_files.names(predicting / "new")


def test_bilm_tf_leaves_the_softmax_behind_and_that_is_said(predicting, elmore_command):
    command = ("convert", "lm", "--to", "bilm-tf", "--from-zeros", "--out", "w.hdf5")
    assert "cannot store an LM head" in elmore_command(*command).err
    assert "LM head" not in elmore_command(*command, "--no-softmax").err
    command = ("convert", "model", "--to", "bilm-tf", "--out", "v.hdf5", "--overwrite")
    assert "LM head" not in elmore_command(*command).err


def test_a_softmax_of_other_weights_is_refused_with_a_remedy_that_works(predicting, elmore_command):
    tiny.model(seed=8).save_pretrained("lm")
    result = elmore_command("convert", "lm", "--out", "new")
    assert result.status == 2
    assert "does not belong to these weights" in result.err
    assert "--no-softmax" in result.err
    assert not (predicting / "new").exists()
    assert elmore_command("convert", "lm", "--out", "new", "--no-softmax").status == 0


def test_a_number_too_large_for_f16_is_named_and_bf16_holds_it(predicting, elmore_command):
    model = ElmoModel.from_pretrained("model")
    model.bilm.forward_lm[0].input_weight.data[1, 1] = 7e4
    model.save_pretrained("large")
    result = elmore_command("convert", "large", "--out", "new", "--store", "f16")
    assert (result.status, (predicting / "new").exists()) == (2, False)
    message = " ".join(result.err.split())
    assert "weight 'forward_lm.0.input_weight' has the number 70000" in message
    assert "store it as bf16" in message
    assert elmore_command("convert", "large", "--out", "new", "--store", "bf16").status == 0


@pytest.mark.parametrize("is_adaptive", [False, True])
@pytest.mark.parametrize("store", ["f32", "f16"])
def test_info_reports_the_softmax(store, is_adaptive, predicting, elmore_command):
    make_language_model(is_adaptive=is_adaptive).save("lm", store=store)
    facts = elmore_command("info", "lm", "--json").json
    wanted = {
        "stored": store,
        "stored_bytes": (predicting / "lm" / "model.safetensors").stat().st_size,
        "has_softmax": True,
        "softmax_kind": "adaptive" if is_adaptive else "words",
        "softmax_words": 12,
        "softmax_stored": store,
        "softmax_bytes": sum((predicting / "lm" / name).stat().st_size for name in SOFTMAX_FILES),
        "softmax_fits": True,
    }
    assert wanted.items() <= facts.items()
    shown = [line.split() for line in elmore_command("info", "lm").out.splitlines()]
    assert ["LM", "head", "stored", "as", store] in shown
    assert ["LM", "head", "fits", "the", "model", "yes"] in shown
    assert ["LM", "head", "file", "size", *format_bytes(wanted["softmax_bytes"]).split()] in shown
    assert not [line for line in shown if "softmax" in line]


def test_info_of_a_hub_model_downloads_it_without_the_weights_of_its_lm_head(
    predicting, monkeypatch, elmore_command
):
    snapshot = predicting / "hub" / "snapshots" / "c0ffee"
    snapshot.mkdir(parents=True)

    def fetch(hub_id, *, allow_patterns, **options):
        assert hub_id == "owner/name"
        for path in (predicting / "lm").iterdir():
            if path.name in allow_patterns:
                (snapshot / path.name).write_bytes(path.read_bytes())
        return str(snapshot)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    local = elmore_command("info", "lm", "--json").json
    found = elmore_command("info", "owner/name", "--json").json
    for name in ("parameters", "layers", "has_softmax", "softmax_words"):
        assert found[name] == local[name], name
    assert not (snapshot / "softmax.safetensors").exists()


def test_info_reads_no_weight_of_the_softmax(predicting, elmore_command):
    path = predicting / "lm" / "softmax.safetensors"
    facts = elmore_command("info", "lm", "--json").json
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    path.write_bytes(content[:start] + b"\xff" * (len(content) - start))  # none of it a number
    assert elmore_command("info", "lm", "--json").json == facts
    path.unlink()  # as of a hub model that was never asked to predict
    facts = elmore_command("info", "lm", "--json").json
    assert (facts["softmax_words"], facts["softmax_stored"]) == (12, None)


def test_info_of_a_model_without_a_softmax_says_so(predicting, elmore_command):
    facts = elmore_command("info", "model", "--json").json
    assert (facts["stored"], facts["has_softmax"]) == ("f32", False)
    assert not [name for name in facts if name.startswith("softmax")]
    elmore_command("convert", "model", "--to", "bilm-tf", "--out", "w.hdf5")
    facts = elmore_command("info", "w.hdf5", "--json").json
    assert (facts["stored"], facts["has_softmax"]) == (None, False)


def test_info_detects_a_softmax_of_other_weights(predicting, elmore_command):
    tiny.model(seed=8).save_pretrained("lm")
    assert elmore_command("info", "lm", "--json").json["softmax_fits"] is False
    for name in ("softmax.safetensors", "softmax.json"):
        (predicting / "lm" / name).unlink()
        facts = elmore_command("info", "lm", "--json").json
        assert name in facts["softmax_missing"]
        assert facts["parameters"] > 0


def test_info_shows_sizes(folder, elmore_command):
    facts = elmore_command("info", "model", "--json").json
    assert facts["parameters"] == tiny.num_weights(tiny.byte_config())
    assert facts["memory_bytes"] == 4 * facts["parameters"]
    assert (facts["layers"], facts["vector_dim"], facts["residuals"]) == (3, 10, True)
    shown = elmore_command("info", "model").out
    assert f"{facts['parameters']:,}" in shown
    assert ["hash", facts["hash"]] in [line.split() for line in shown.splitlines()]
    assert "highway layer" in shown
    assert "layer(s)" not in shown


def test_the_version_is_printed(elmore_command):
    result = elmore_command("--version")
    assert (result.status, result.out.strip()) == (0, elmore.__version__)


def test_what_was_assumed_about_a_model_is_said(folder, elmore_command):
    architecture = peer_files.make_architecture(encoder={"cell_clip": 3, "proj_clip": 3})
    weights = peer_files.make_many_langs(architecture)
    peer_files.write_many_langs_folder(
        folder / "many", architecture, *weights, has_architecture=False
    )
    assert "no architecture file" in elmore_command("convert", "many", "--out", "new").err


def test_info_without_a_name_is_of_the_model_that_comes_with_elmore(elmore_command):
    facts = elmore_command("info", "--json").json
    assert facts["hash"] == load_model().fingerprint()
    assert facts["stored"] in list(WEIGHTS_ON_DISK)


def test_info_of_an_untrained_model_says_so(folder, elmore_command):
    config = replace(tiny.byte_config(), about=About(is_trained=False))
    tiny.model(config).save_pretrained(folder / "untrained")
    assert "random" in elmore_command("info", "untrained").out
