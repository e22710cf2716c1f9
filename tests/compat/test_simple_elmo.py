import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from elmore.compat.simple_elmo import ElmoModel
from elmore.errors import ModelError
from tests.compat.old_models import OldModel, assert_close
from tests.tiny import TRAINED_MODEL

TEXTS = [["a", "bank"], ["b"], ["The", "bank", "of"], ["c"], ["d", "e"]]


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    return OldModel(tmp_path_factory.mktemp("compat") / "model")


def load(old, **settings):
    model = ElmoModel()
    assert model.load(str(old.folder), **settings) == "The model is now loaded."
    return model


def expected(old, *, size, warmup):
    """Return the layers of each text; the first batch is read twice if `warmup`."""
    batches = [TEXTS[start : start + size] for start in range(0, len(TEXTS), size)]
    read = [batches[0], *batches] if warmup else batches
    return [layers for batch in old.expected(read)[-len(batches) :] for layers in batch]


@pytest.mark.parametrize("warmup", [True, False])
@pytest.mark.parametrize("layers", ["average", "top", "all"])
def test_vectors_of_batches_with_and_without_a_warmup(old, layers, warmup):
    model = load(old, max_batch_size=2)
    choose = {"all": lambda x: x, "top": lambda x: x[-1], "average": lambda x: x.mean(axis=0)}
    for _ in range(2):  # a call does not depend on the one before
        found = model.get_elmo_vectors(TEXTS, warmup=warmup, layers=layers)
        assert found.dtype == np.float64
        assert found.shape == ((5, 3, 3, 10) if layers == "all" else (5, 3, 10))
        for vectors, wanted in zip(found, expected(old, size=2, warmup=warmup), strict=True):
            assert_close(vectors[..., : wanted.shape[1], :], choose[layers](wanted))


def test_padding_is_that_of_the_batch_as_in_tensorflow(old):
    """Layer 0 has the vector of a token without characters up to the batch's longest text."""
    found = load(old, max_batch_size=2).get_elmo_vectors(TEXTS)
    assert_close(found[1, 1], np.tile(old.padding_vector(), 2) / 3)
    assert not found[1, 2].any()


def test_a_session_continues_the_state_of_the_last_call(old):
    model = load(old)
    first = model.get_elmo_vectors(TEXTS[:1], warmup=False)
    again = model.get_elmo_vectors(TEXTS[:1], warmup=False)
    continued = model.get_elmo_vectors(TEXTS[:1], warmup=False, session=object())
    assert np.array_equal(first, again)
    wanted = old.expected([[TEXTS[0]], [TEXTS[0]]])[1][0]
    assert_close(continued[0], wanted.mean(axis=0))


def test_policy_reset_does_not_depend_on_batches(old):
    model = ElmoModel(policy="reset")
    model.load(old.folder, max_batch_size=2)
    wanted = old.expected([[text] for text in TEXTS], carry=False)
    for vectors, (layers,) in zip(model.get_elmo_vectors(TEXTS), wanted, strict=True):
        assert_close(vectors[: layers.shape[1]], layers.mean(axis=0))


@pytest.mark.parametrize("layers", ["average", "top", "all"])
def test_averages_are_over_tokens_not_padding_and_keep_layers_apart(old, layers):
    """Two faults of simple_elmo's that are not reproduced."""
    choose = {"all": lambda x: x, "top": lambda x: x[-1], "average": lambda x: x.mean(axis=0)}
    found = load(old, max_batch_size=2).get_elmo_vector_average(TEXTS, layers=layers)
    for average, wanted in zip(found, expected(old, size=2, warmup=True), strict=True):
        mean = choose[layers](wanted).mean(axis=-2)
        assert_close(average, mean / np.linalg.norm(mean))


def test_a_text_without_tokens_has_an_average_of_zeros(old):
    found = load(old).get_elmo_vector_average([["a"], []])
    assert not found[1].any()
    assert np.linalg.norm(found[0]) == pytest.approx(1.0)


def test_a_zip_archive_is_loaded_like_its_folder(old, tmp_path):
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        for name in ("options.json", "model.hdf5"):
            archive.write(old.folder / name, name)
    model = ElmoModel()
    model.load(str(tmp_path / "model.zip"))
    wanted = load(old).get_elmo_vectors(TEXTS)
    assert np.array_equal(model.get_elmo_vectors(TEXTS), wanted)
    assert (model.n_layers, model.vector_size, model.max_chars, model.batch_size) == (3, 10, 50, 32)


def test_an_archive_without_a_model_or_a_damaged_one_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    (tmp_path / "damaged.zip").write_text("not an archive")
    for name, message in (("empty", "holds 0 models"), ("damaged", "could not be unpacked")):
        with pytest.raises(ModelError, match=rf"{name}\.zip {message}"):
            ElmoModel().load(tmp_path / f"{name}.zip")


def test_an_archive_that_unpacks_to_far_more_is_refused(old, tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(old.options, "options.json")
        archive.writestr("model.hdf5", bytes(1 << 25))
    with pytest.raises(ModelError, match="unpacks to more than"):
        ElmoModel().load(tmp_path / "bomb.zip")


def test_top_at_loading_makes_the_top_layer_the_default(old):
    wanted = load(old).get_elmo_vectors(TEXTS, layers="top")
    assert np.array_equal(load(old, top=True).get_elmo_vectors(TEXTS), wanted)
    averages = load(old).get_elmo_vector_average(TEXTS, layers="top")
    assert np.array_equal(load(old, top=True).get_elmo_vector_average(TEXTS), averages)
    assert load(old, top=True).get_elmo_vectors(TEXTS, layers="all").shape == (5, 3, 3, 10)


def test_weights_of_another_name_are_found(old, tmp_path):
    shutil.copy(old.options, tmp_path / "options.json")
    with pytest.raises(SystemExit, match="no HDF5 model files"):
        ElmoModel().load(tmp_path)
    shutil.copy(old.weights, tmp_path / "elmo_weights.hdf5")
    assert ElmoModel().load(tmp_path) == "The model is now loaded."


def test_what_cannot_be_loaded_ends_the_program(old, tmp_path):
    with pytest.raises(SystemExit, match="path not found"):
        ElmoModel().load(str(tmp_path / "nothing"))
    with pytest.raises(SystemExit, match="ZIP archive"):
        ElmoModel().load(old.options)
    options = json.loads(Path(old.options).read_text())
    options["char_cnn"]["n_characters"] = 261
    (tmp_path / "options.json").write_text(json.dumps(options))
    shutil.copy(old.weights, tmp_path / "model.hdf5")
    with pytest.raises(SystemExit, match="set it to 262"):
        ElmoModel().load(tmp_path)
    with pytest.raises(SystemExit, match="load a model"):
        ElmoModel().get_elmo_vectors(TEXTS)


def test_substitutes_are_the_words_that_each_direction_expects():
    model = ElmoModel()
    model.load(TRAINED_MODEL, full=True, max_batch_size=2)
    found = model.get_elmo_substitutes(["The man .", "a"], topn=2)
    assert [[token["word"] for token in text] for text in found] == [["The", "man", "."], ["a"]]
    (expected_words,) = model.model.expect([["The", "man", "."]], top=2, excluded=["<S>", "</S>"])
    forward = found[0][1]["forward"]
    assert forward["candidate_words"] == [word for word, _ in expected_words[1].forward_lm]
    assert [model.model.words[number] for number in forward["candidates"]] == (
        forward["candidate_words"]
    )
    logs = [number for _, number in expected_words[1].forward_lm]
    assert forward["logp"] == pytest.approx(logs, abs=1e-4)
    assert set(found[0][0]) == {"word", "forward", "backward"}
    with pytest.raises(SystemError, match="Batch size"):
        model.get_elmo_substitutes(["a"])


def test_substitutes_need_a_language_model(old):
    with pytest.raises(SystemExit, match="full=True"):
        load(old, max_batch_size=1).get_elmo_substitutes(["a"])
    with pytest.raises(ModelError):
        load(old, full=True)


def test_substitutes_come_from_the_softmax_of_a_tensorflow_checkpoint():
    folder = Path(__file__).parents[1] / "weights" / "tf_checkpoint" / "fixture" / "whole"
    model = ElmoModel()
    model.load(folder, full=True, max_batch_size=1)
    first, *_ = model.get_elmo_substitutes(["the bank"], topn=2)[0]
    words = (folder / "vocab.txt").read_text(encoding="utf-8").split()
    forward = first["forward"]
    assert forward["candidate_words"] == [words[number] for number in forward["candidates"]]
    assert sorted(forward["logp"], reverse=True) == forward["logp"]
