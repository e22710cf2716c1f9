"""A checkpoint of bilm-tf gives the vectors of its HDF5 weights, and predicts words."""

import gzip
import json
import shutil

import numpy as np
import pytest

import elmore
from elmore.errors import ModelError
from elmore.lm.language_model import NoSoftmaxError, load_language_model
from elmore.weights.bilm_tf_checkpoint import name_variable
from elmore.weights.loading import load_model
from tests.weights.peer_files import make_arrays, make_options
from tests.weights.refusals import assert_refused
from tests.weights.tf_checkpoint.tables import FIXTURE, write_checkpoint

WHOLE, PARTITIONED = FIXTURE / "whole", FIXTURE / "partitioned"
EXPECTED = json.loads((WHOLE / "expected.json").read_text())
HDF5 = "weights.hdf5"


@pytest.fixture
def run(tmp_path):
    """A folder as bilm-tf leaves it after training."""
    folder = tmp_path / "run"
    shutil.copytree(WHOLE, folder, ignore=shutil.ignore_patterns(HDF5, "expected.json"))
    return folder


def assert_scores(model):
    (score,) = model.score([EXPECTED["sentence"]])
    forward, backward = EXPECTED["log_probs"]
    assert np.abs(np.subtract(score.forward_lm, forward)).max() < 1e-5
    assert np.abs(np.subtract(score.backward_lm, backward[::-1])).max() < 1e-5


@pytest.mark.parametrize("given", ["", "model.ckpt-2", "model.ckpt-2.index"])
def test_vectors_are_those_of_the_dumped_weights_to_the_bit(run, given):
    from_checkpoint = elmore.load(run / given, layers="all")
    from_hdf5 = elmore.load(WHOLE / HDF5, layers="all")
    sentences = [EXPECTED["sentence"], ["extraordinarily-long", "日本語"]]
    for ours, theirs in zip(
        from_checkpoint.embed(sentences), from_hdf5.embed(sentences), strict=True
    ):
        assert ours.tobytes() == theirs.tobytes()
    assert load_model(run / given).fingerprint() == load_model(WHOLE / HDF5).fingerprint()


def test_words_have_the_probabilities_that_tensorflow_computed(run):
    assert_scores(load_language_model(run))
    assert_scores(elmore.LanguageModel.load(run / "model.ckpt-2"))
    (score,) = [elmore.load(run).score([EXPECTED["sentence"]])[0]]
    assert score.is_known == [token != "naïve" for token in EXPECTED["sentence"]]


def test_a_partitioned_checkpoint_in_two_files_is_the_same_model(run):
    shutil.copytree(PARTITIONED, run, dirs_exist_ok=True)
    assert_scores(load_language_model(run))


def test_gaps_are_filled_with_words_of_the_vocabulary(run):
    fillings = load_language_model(run).fill(["the", "___", "was", "closed"], top=3)
    words = (WHOLE / "vocab.txt").read_text(encoding="utf-8").split()
    assert {filling.word for filling in fillings} <= set(words) - {"<S>", "</S>", "<UNK>"}


def test_the_vocabulary_may_be_given_or_compressed(run, tmp_path):
    vocabulary = tmp_path / "words"
    (run / "vocab.txt").rename(vocabulary)
    load_model(run)  # vectors need no vocabulary
    assert_refused(lambda: load_language_model(run), "--vocabulary")
    assert_scores(load_language_model(run, vocabulary=vocabulary))
    assert elmore.load(run, vocabulary=vocabulary).score("the bank").tokens == ["the", "bank"]
    (run / "vocab-2016.txt.gz").write_bytes(gzip.compress(vocabulary.read_bytes()))
    assert_scores(load_language_model(run))


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ("<S>\n</S>\n<UNK>\nthe\n", r"has shape \(12, 8\), expected \(4, 8\)"),
        ("the\nbank\n", "lack <S>"),
        ("", "lack <S>"),
    ],
)
def test_another_vocabulary_is_refused(run, words, match):
    (run / "vocab.txt").write_text(words)
    assert_refused(lambda: load_language_model(run), match)


def test_a_softmax_is_joined_to_hdf5_weights(run, tmp_path):
    (tmp_path / "dumped").mkdir()
    for name in (HDF5, "options.json"):
        shutil.copy(WHOLE / name, tmp_path / "dumped")
    weights = tmp_path / "dumped" / HDF5
    with pytest.raises(NoSoftmaxError, match="--softmax"):
        load_language_model(weights)
    assert_scores(load_language_model(weights, softmax=run))
    assert_scores(elmore.LanguageModel.load(weights, softmax=run / "model.ckpt-2"))
    (score,) = elmore.load(weights, softmax=run).score([EXPECTED["sentence"]])
    assert len(score.tokens) == 9
    assert_refused(lambda: load_language_model(weights, softmax=weights), "no TensorFlow checkp")


def test_weights_and_checkpoint_in_one_folder_belong_together():
    assert_scores(load_language_model(WHOLE))


def test_the_softmax_of_other_weights_is_refused(run, tmp_path):
    options = json.loads((WHOLE / "options.json").read_text())
    other = {
        name: np.zeros_like(array) if name == "char_embed" else array
        for name, array in make_arrays(options).items()
    }
    write_checkpoint(tmp_path / "other", {name_variable(name): a for name, a in other.items()})
    shutil.copy(run / "options.json", tmp_path)
    shutil.copy(run / "vocab.txt", tmp_path)
    assert_refused(lambda: load_language_model(run, softmax=tmp_path / "other"), "other weights")


def write_word_model(folder, *, shares: bool):
    options = make_options()
    arrays = {
        name_variable(name): array
        for name, array in make_arrays(options).items()
        if name.startswith("RNN")
    }
    random = np.random.default_rng(1)
    arrays["lm/embedding"] = random.normal(size=(5, 4)).astype(np.float32)
    arrays["lm/softmax/b"] = random.normal(size=5).astype(np.float32)
    if not shares:
        arrays["lm/softmax/W"] = random.normal(size=(5, 4)).astype(np.float32)
    del options["char_cnn"]
    (folder / "options.json").write_text(json.dumps(options))
    (folder / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nthe\nbank\n")
    write_checkpoint(folder / "model.ckpt-1", arrays)
    return arrays


@pytest.mark.parametrize("shares", [True, False], ids=["shared with the softmax", "its own"])
def test_word_vectors_are_read_from_the_checkpoint(shares, tmp_path):
    arrays = write_word_model(tmp_path, shares=shares)
    model = load_language_model(tmp_path)
    layer = elmore.load(tmp_path).embed([["bank", "zebra"]], layers=0)[0]
    expected = arrays["lm/embedding"][[4, 2]]
    assert np.array_equal(layer, np.concatenate([expected, expected], axis=1))
    softmax = arrays["lm/embedding" if shares else "lm/softmax/W"]
    assert np.array_equal(model.softmax.weight.detach().numpy(), softmax)
    (tmp_path / "vocab.txt").unlink()
    assert_refused(lambda: load_model(tmp_path), "--vocabulary")


def test_options_of_another_network_are_refused(run):
    options = json.loads((run / "options.json").read_text())
    options["lstm"]["dim"] = 32
    (run / "options.json").write_text(json.dumps(options))
    assert_refused(lambda: load_model(run), "has shape")
    options["lstm"].update(dim=16, n_layers=1)
    (run / "options.json").write_text(json.dumps(options))
    assert_refused(lambda: load_model(run), "lacks|fewer layers")
    (run / "options.json").unlink()
    assert_refused(lambda: load_model(run), "--options")


def test_commands_take_a_checkpoint(run, tmp_path, elmore_command):
    text = tmp_path / "text.txt"
    text.write_text(" ".join(EXPECTED["sentence"]) + "\n", encoding="utf-8")
    checkpoint = run / "model.ckpt-2"
    scored = elmore_command("score", text, "--tokenized", "--model", checkpoint, "--json")
    assert scored.status == 0, scored.err
    assert abs(json.loads(scored.out)["forward_lm"][0] - EXPECTED["log_probs"][0][0]) < 1e-5
    vocabulary = tmp_path / "words.txt"
    (run / "vocab.txt").rename(vocabulary)
    more = ("--model", WHOLE / HDF5, "--softmax", checkpoint, "--vocabulary", vocabulary)
    assert elmore_command("evaluate", text, "--tokenized", *more).status == 0
    out = tmp_path / "model"
    made = elmore_command("convert", checkpoint, "--vocabulary", vocabulary, "--out", out)
    assert made.status == 0, made.err
    assert_scores(load_language_model(out))
    facts = json.loads(elmore_command("info", checkpoint, "--json").out)
    assert facts["has_softmax"] is True
    refused = elmore_command("score", text, "--model", checkpoint)
    assert (refused.status, "--vocabulary" in refused.err) == (2, True)


def test_a_checkpoint_in_the_first_format_of_tensorflow_is_refused(tmp_path):
    (tmp_path / "model.ckpt").write_bytes(b"\0" * 100)
    with pytest.raises(ModelError, match="is not a model"):
        load_model(tmp_path / "model.ckpt")
