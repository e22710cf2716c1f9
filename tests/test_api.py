"""What a guide shows works from Python, by the names that `elmore` exports."""

import numpy as np
import pytest

import elmore
from elmore.errors import ConfigError
from tests.golden.results import DATA, SMALL_MODEL, TEXT, TRAINED_MODEL
from tests.tiny import model as make_model

SENTENCES = ["The bank of the river .", "She went to the bank .", "The bank was closed ."]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("api") / "corpus"
    return elmore.prepare(TEXT, folder, form="tokenized", min_count=1, heldout=0.2, processes=1)


def test_from_text_to_a_model_and_its_vectors(corpus, tmp_path):
    (tmp_path / "small.toml").write_text(SMALL_MODEL)
    report = elmore.pretrain(
        corpus, tmp_path / "run", config=tmp_path / "small.toml", settings={"training.max_steps": 3}
    )
    assert report.step == 3
    embedder = elmore.load(tmp_path / "run" / "model")
    assert embedder.embed("the bank").shape == (2, 10)
    totals = elmore.evaluate(corpus.heldout.documents(), model=tmp_path / "run" / "model")
    assert totals.perplexity == pytest.approx(report.heldout.perplexity, rel=1e-4)
    opened = elmore.open_corpus(str(corpus.folder))
    assert opened.fingerprint == corpus.fingerprint


def test_weights_of_sources_are_settings(corpus, tmp_path):
    (tmp_path / "small.toml").write_text(SMALL_MODEL)
    config = {"config": tmp_path / "small.toml", "settings": {"training.max_steps": 1}}
    elmore.pretrain(corpus, tmp_path / "run", weights={"text": 2}, **config)
    with pytest.raises(ConfigError, match="is named 'other'"):
        elmore.pretrain(corpus, tmp_path / "other", weights={"other": 2}, **config)


def test_similar_uses_of_a_word():
    found = elmore.neighbors("bank", SENTENCES, model=TRAINED_MODEL, top=2)
    assert len(found) == 2
    (best,) = elmore.neighbors(
        "bank", SENTENCES, query="The bank was closed .", model=elmore.load(TRAINED_MODEL), top=1
    )
    assert best.context.tokens == SENTENCES[2].split()
    assert best.similarity == pytest.approx(1.0, abs=1e-6)


def test_a_task_is_trained_loaded_and_predicts(tmp_path):
    make_model(scale=0.4).save_pretrained(tmp_path / "model")
    settings = {
        "task.column": 2, "task.hidden_dim": 5, "words.dim": 4, "characters.num_filters": 3,
        "training.max_epochs": 1, "training.min_epoch_steps": 1,
    }  # fmt: skip
    report = elmore.fit(
        "tags", tmp_path / "task", data=DATA, model=tmp_path / "model", settings=settings
    )
    assert report.scores["dev"].keys() == {"accuracy"}
    task = elmore.load_task(tmp_path / "task")
    tags = elmore.predict(task, [["a", "bad", "Cafe"]])
    assert [len(found) for found in tags] == [3]
    assert elmore.predict(tmp_path / "task", [["a", "bad", "Cafe"]]) == tags
    with pytest.raises(ConfigError, match="give a folder"):
        elmore.fit("tags", tmp_path / "other", train=DATA / "train.txt")


def test_a_setting_that_cannot_be_is_named(corpus, tmp_path):
    for settings, message in (
        ({"training.row": 4}, "did you mean 'rows'"),
        ({"rows": 4}, "section.setting=value"),
        ({"training.rows": "many"}, "rows"),
    ):
        with pytest.raises(ConfigError, match=message):
            elmore.pretrain(corpus, tmp_path / "run", config="tiny", settings=settings)


def test_language_models_score_and_fill_gaps():
    language_model = elmore.LanguageModel.load(TRAINED_MODEL)
    (score,) = language_model.score([["the", "bank"]])
    assert len(score.forward_lm) == 3
    assert len(language_model.fill(["the", "___", "of", "the", "river"], top=4)) == 4


def test_old_names_still_work():
    assert elmore.load_task_model is elmore.load_task


def test_an_embedder_writes_a_file_of_some_layers(tmp_path):
    embedder = elmore.load(TRAINED_MODEL)
    for ending in ("h5", "parquet", "npz"):
        path = tmp_path / f"vectors.{ending}"
        report = elmore.embed_to_file(embedder, SENTENCES, path, layers=[0, 2])
        assert report.layers == "0,2"
        for sentence, read in zip(SENTENCES, elmore.read_vectors(path), strict=True):
            assert np.array_equal(read.vectors, embedder.embed(sentence, layers=[0, 2]))
