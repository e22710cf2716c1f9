"""Pretraining continues from any model, with its softmax or a new one."""

import json

import numpy as np
import pytest
import torch

import elmore
from elmore.errors import ConfigError, DataError
from elmore.lm.language_model import load_language_model
from elmore.lm.settings import load_settings, read_settings
from elmore.lm.start_from import FirstWeights
from elmore.weights.bilm_tf import write_bilm_tf
from elmore.weights.loading import load_model
from tests import tiny
from tests.corpus.memory_corpus import make_corpus
from tests.lm.runs import (
    HELDOUT,
    TEXT,
    Watcher,
    assert_same_bits,
    corpus,
    last_tensors,
    make_settings,
    run,
    run_until,
)
from tests.weights.tf_checkpoint.tables import FIXTURE

NO_STEP = "training.max_steps=1", "optimizer.learning_rate=1e-30", "run.rest_tokens=0"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model that was trained for a few steps."""
    folder = tmp_path_factory.mktemp("first") / "run"
    run(folder, "run.rest_tokens=0")
    return folder / "model"


def start(source, tmp_path, *changes):
    settings = make_settings(*changes)
    first = FirstWeights(source, folder=tmp_path / "run")
    return first, first.complete(settings)


@pytest.mark.slow
def test_training_starts_with_the_weights_of_the_model(model, tmp_path):
    watcher = Watcher()
    run(tmp_path / "run", *NO_STEP, start_from=model, observer=watcher)
    before, after = load_language_model(model), load_language_model(tmp_path / "run" / "model")
    assert_same_bits(after.elmo.bilm.state_dict(), before.elmo.bilm.state_dict())
    assert torch.equal(after.softmax.weight, before.softmax.weight)
    assert watcher.messages == [f"starting from {model} with its softmax"]
    about = after.elmo.config.about
    assert (about.name, about.source) == ("run", "elmore pretrain, from run")
    assert "; then " in str(about.trained_on)


def test_the_settings_describe_the_new_model(model, tmp_path):
    first, settings = start(model, tmp_path, "model.about.name=new", "model.about.language=en")
    about = first.make_parts(settings, corpus())[0].config.about
    assert (about.name, about.language) == ("new", "en")
    assert about.source == "elmore pretrain, from run"
    assert "; then " in str(about.trained_on)
    first = FirstWeights(model, folder=tmp_path / "run")
    alone = read_settings({"model": {"about": {"name": "mine"}}}, needs_model=False)
    assert first.make_parts(first.complete(alone), corpus())[0].config.about.name == "mine"
    wrong = read_settings({"model": {"about": {"nam": "mine"}}}, needs_model=False)
    with pytest.raises(ConfigError, match="nam"):
        first.complete(wrong)


@pytest.mark.slow
def test_a_stopped_run_ends_like_one_that_was_not(model, tmp_path):
    run(tmp_path / "whole", start_from=model)
    run_until(tmp_path / "stopped", 5, start_from=model)
    run(tmp_path / "stopped", start_from=model)
    assert_same_bits(last_tensors(tmp_path / "stopped"), last_tensors(tmp_path / "whole"))
    run(tmp_path / "other")
    different = last_tensors(tmp_path / "other")
    assert any(
        not torch.equal(tensor, different[name])
        for name, tensor in last_tensors(tmp_path / "whole").items()
    )


@pytest.mark.slow
def test_a_run_is_not_resumed_from_another_model(model, tmp_path):
    run_until(tmp_path / "run", 5, start_from=model)
    for other in ({}, {"start_from": tmp_path / "run2" / "model"}):
        if other:
            run(tmp_path / "run2", "training.seed=3")
        with pytest.raises(DataError, match="another model to start from"):
            run(tmp_path / "run", **other)
    with pytest.raises(ConfigError, match="give another folder"):
        run(tmp_path / "run2", start_from=tmp_path / "run2" / "model")


def test_a_model_without_a_softmax_gets_a_new_one(tmp_path):
    config = {"model.lstm.forget_bias": 1.0}
    write_bilm_tf(tiny.model(), tmp_path / "weights.hdf5")
    first, settings = start(
        tmp_path / "weights.hdf5", tmp_path, "model.characters.num_highway_layers=2"
    )
    assert first.explain(settings, corpus()).endswith("with a new softmax, because it has none")
    elmo, softmax = first.make_parts(settings, corpus())
    assert elmo.fingerprint() == tiny.model().fingerprint(), config
    assert softmax.num_words == len(corpus().vocabulary)


def test_words_of_another_vocabulary_keep_their_vectors(model, tmp_path):
    first, settings = start(model, tmp_path)
    assert first.keeps_softmax(settings, corpus())
    other = make_corpus(TEXT.replace("fish", "frog"), HELDOUT)
    assert not first.keeps_softmax(settings, other)
    assert first.explain(settings, other).endswith(
        "with its softmax, which has 14 of the 15 words of the corpus"
    )
    _, softmax = first.make_parts(settings, other)
    assert softmax.num_words == len(other.vocabulary) == 15
    old = load_language_model(model)
    for word in ("the", "cat", "</S>"):
        here, there = other.vocabulary.index(word), old.words.index(word)
        assert torch.equal(softmax.weight[here], old.softmax.weight[there]), word
        assert softmax.bias[here] == old.softmax.bias[there]
    frog, unknown = other.vocabulary.index("frog"), old.words.index("<UNK>")
    assert torch.equal(softmax.weight[frog], old.softmax.weight[unknown])


def test_another_kind_of_softmax_is_a_new_one(model, tmp_path):
    first, _ = start(model, tmp_path)
    adaptive = make_settings("softmax.kind=adaptive")
    assert not first.keeps_softmax(adaptive, corpus())
    assert "new softmax, because it is of another kind" in first.explain(adaptive, corpus())


def test_another_architecture_is_refused(model, tmp_path):
    with pytest.raises(
        ConfigError, match=r"another architecture .*lstm.cell_dim is 12 in the model and 16"
    ):
        start(model, tmp_path, "model.lstm.cell_dim=16")
    with pytest.raises(ConfigError, match=r"without \[model\]"):
        start(model, tmp_path, "model.characters.max_chars=7")


def test_settings_without_an_architecture_take_that_of_the_model(tmp_path):
    path = tmp_path / "training.toml"
    path.write_text("[training]\nrows = 4\nwindow = 5\n")
    with pytest.raises(ConfigError, match=r"no \[model\.lstm\]"):
        load_settings(path)
    settings = load_settings(path, needs_model=False)
    first = FirstWeights(FIXTURE / "whole", folder=tmp_path / "run")
    completed = first.complete(settings)
    assert completed.model["lstm"]["cell_dim"] == 16
    assert read_settings(completed.to_json()).to_json() == completed.to_json()
    with pytest.raises(ConfigError, match=r"no \[model\.lstm\]"):
        read_settings({"model": {"characters": {}}}, needs_model=False)


@pytest.mark.slow
def test_from_python_and_from_the_command_line(tmp_path, elmore_command):
    (tmp_path / "text.txt").write_text("\n\n".join(["the bank was closed .\nthe river ."] * 30))
    elmore.prepare(tmp_path / "text.txt", tmp_path / "corpus", min_count=1, processes=1)
    path = tmp_path / "training.toml"
    path.write_text("[training]\nrows = 4\nwindow = 5\nmax_steps = 3\n")
    checkpoint = FIXTURE / "whole" / "model.ckpt-2"
    report = elmore.pretrain(
        tmp_path / "corpus", tmp_path / "a", settings=path, start_from=checkpoint
    )
    assert report.step == 3
    made = elmore_command(
        *("pretrain", path, "--corpus", tmp_path / "corpus", "--out", tmp_path / "b"),
        *("--start-from", checkpoint),
    )
    assert made.status == 0, made.err
    assert "with its softmax, which has" in made.err
    vectors = [elmore.load(tmp_path / run / "model").embed("the bank") for run in "ab"]
    assert np.array_equal(*vectors)
    assert load_model(tmp_path / "a" / "model").fingerprint() != load_model(FIXTURE / "whole")
    kept = json.loads((tmp_path / "a" / "settings.json").read_text())
    assert kept["model"]["lstm"]["cell_dim"] == 16
    refused = elmore_command(
        *("pretrain", "tiny", "--corpus", tmp_path / "corpus", "--out", tmp_path / "c"),
        *("--start-from", checkpoint),
    )
    assert (refused.status, "another architecture" in refused.err) == (2, True)
    assert not (tmp_path / "c").exists()
