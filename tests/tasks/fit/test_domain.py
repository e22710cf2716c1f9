"""The paper's domain transfer: a biLM reads the task's text before the task is learned."""

import json

import pytest

from elmore.errors import ConfigError, DataError
from elmore.tasks.fit import domain as domain_module
from elmore.tasks.fit.domain import DomainText, transfer
from elmore.tasks.fit.folder import load_task_model
from elmore.weights.loading import load_model
from tests import tiny
from tests.tasks.fit.made_up import Place, Watcher, write_data

CHANGES = ("elmo.where=input", "elmo.finetune_epochs=2", "training.max_epochs=1")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("domain"))


@pytest.fixture(scope="module")
def report(place):
    return place.fit("run", *CHANGES, elmo=str(tiny.TRAINED_MODEL))


@pytest.mark.slow
def test_the_bilm_reads_the_task_text_and_reports_its_perplexity(place, report):
    before, after = report.perplexity["before"], report.perplexity["after"]
    assert after < before
    tuned = place.folder / "run" / "domain" / "2-epochs" / "run" / "model"
    assert load_model(tuned).fingerprint() != load_model(tiny.TRAINED_MODEL).fingerprint()
    settings = json.loads((place.folder / "run" / "settings.json").read_text())
    assert settings["elmo"]["fingerprint"] == load_model(tuned).fingerprint()


def test_the_folder_can_move_with_its_bilm(place, report, tmp_path):
    (place.folder / "run").rename(tmp_path / "moved")
    try:
        loaded = load_task_model(tmp_path / "moved")
        dev = loaded.task.read(place.data / "dev.txt")
        assert loaded.score(dev) == report.scores["dev"]
    finally:
        (tmp_path / "moved").rename(place.folder / "run")


def test_nothing_is_done_twice(place, report, monkeypatch):
    monkeypatch.setattr(domain_module, "finetune_model", None)
    monkeypatch.setattr(domain_module, "prepare_corpus", None)
    again = place.fit("run", *CHANGES, elmo=str(tiny.TRAINED_MODEL))
    assert again.perplexity == report.perplexity
    # As if it had been killed when the task began to learn.
    (place.folder / "run" / "report.json").unlink()
    watcher = Watcher()
    again = place.fit("run", *CHANGES, elmo=str(tiny.TRAINED_MODEL), observer=watcher)
    assert again.perplexity == report.perplexity
    assert again.scores == report.scores


@pytest.mark.slow
def test_a_kill_before_its_last_measurement_is_repeated(place, report):
    path = place.folder / "run" / "domain" / "2-epochs" / "run" / "report.json"
    whole = json.loads(path.read_text())
    # What the end of pretraining writes, before perplexities are compared.
    path.write_text(json.dumps({name: whole[name] for name in whole if name != "perplexity"}))
    (place.folder / "run" / "report.json").unlink()
    again = place.fit("run", *CHANGES, elmo=str(tiny.TRAINED_MODEL))
    assert again.perplexity == pytest.approx(report.perplexity)


def test_a_model_without_a_softmax_is_refused_before_anything_is_written(place):
    with pytest.raises(DataError, match=r"no LM head.*elmo.finetune_epochs = 0"):
        place.fit("none", *CHANGES)
    assert not (place.folder / "none").exists()


def test_a_shared_folder_is_of_one_model(place, report):
    folder = place.folder / "run" / "domain" / "2-epochs"
    fingerprint = load_model(tiny.TRAINED_MODEL).fingerprint()
    empty = DomainText(train=list, dev=list)
    for elmo, message in (("another", "another biLM, other text;"), (fingerprint, ": other text;")):
        with pytest.raises(ConfigError, match=message):
            transfer(None, folder, empty, elmo=elmo, epochs=2.0)


def test_each_distinct_sentence_is_written_once(tmp_path):
    path = tmp_path / "train.txt"
    sentences = [["a", "b"], ["New York", "is"], ("a", "b"), ["tab\there", "\ud800x"]]
    domain_module._write(path, sentences)
    assert path.read_text() == "a\tb\nNew York\tis\ntab here\tx\n"


def test_other_data_would_be_another_training(place, report, tmp_path):
    data = write_data(tmp_path, num_train=5)
    with pytest.raises(ConfigError, match="other data for train"):
        place.fit("run", *CHANGES, elmo=str(tiny.TRAINED_MODEL), data_folder=data)


@pytest.mark.slow
def test_a_restart_reads_another_text(place, tmp_path):
    place.fit("other", *CHANGES, elmo=str(tiny.TRAINED_MODEL))
    data = write_data(tmp_path, num_train=12)
    with pytest.raises(ConfigError, match="other data for train"):
        place.fit("other", *CHANGES, elmo=str(tiny.TRAINED_MODEL), data_folder=data)
    again = place.fit(
        "other", *CHANGES, elmo=str(tiny.TRAINED_MODEL), data_folder=data, restart=True
    )
    assert again.num_examples["train"] == 12
