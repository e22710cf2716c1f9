"""Fine-tuning starts from a model, learns a domain and its words, and reports the change."""

import pytest
import torch

from elmore.errors import ModelError
from elmore.lm.finetune import finetune_model, load_start, make_settings
from elmore.lm.language_model import load_language_model
from elmore.weights.bilm_tf import write_bilm_tf
from tests import tiny
from tests.corpus.memory_corpus import MemoryCorpus, make_corpus
from tests.lm.runs import run

pytestmark = pytest.mark.slow

DOMAIN = "\n\n".join("the lstm reads tokens .\nthe gate opens the cell .\n" for _ in range(4))
HELDOUT = "the lstm opens the gate .\nthe cell reads tokens .\n"
CHANGES = {
    "training": {"rows": 2, "window": 6, "num_epochs": 10, "dropout": 0.0},
    "run": {"rest_tokens": 20, "log_steps": 5},
    "softmax": {"num_negatives": 8},
    "optimizer": {"name": "adagrad"},
}


def domain(words: list[str]) -> MemoryCorpus:
    known = make_corpus(DOMAIN).vocabulary[3:]
    new = [word for word in known if word not in words]
    return make_corpus(DOMAIN, HELDOUT, vocabulary=[*words, *new])


def test_a_domain_is_learned_and_the_gain_is_reported(tmp_path):
    run(tmp_path / "general", "training.max_steps=20")
    source = tmp_path / "general" / "model"
    start = load_start(source)
    corpus = domain(start.words)
    report = finetune_model(
        source, corpus, tmp_path / "domain", settings=make_settings(start.elmo, CHANGES)
    )
    assert report.num_new_words == len(corpus.vocabulary) - len(start.words) > 0
    assert report.after.perplexity < 0.7 * report.before.perplexity
    assert report.after_shared.perplexity < report.before_shared.perplexity
    # The old words are fewer, so each is easier to foretell.
    assert report.before_shared.perplexity < report.before.perplexity
    trained = load_language_model(tmp_path / "domain" / "model")
    assert trained.words == corpus.vocabulary
    assert "lstm" in trained.words
    assert report.to_json()["perplexity"]["after"] == report.after.perplexity


def test_it_starts_with_the_weights_of_the_model(tmp_path):
    run(tmp_path / "general", "training.max_steps=4")
    start = load_start(tmp_path / "general" / "model")
    elmo, softmax = start.make_parts(domain(start.words))
    general = load_language_model(tmp_path / "general" / "model")
    for name, weight in general.elmo.bilm.state_dict().items():
        assert torch.equal(elmo.bilm.state_dict()[name], weight), name
    assert torch.equal(softmax.weight[3:15], general.softmax.weight[3:15])


def test_an_adaptive_softmax_is_trained_on_but_takes_no_new_words(tmp_path):
    run(tmp_path / "general", "training.max_steps=4", "softmax.kind=adaptive")
    source = tmp_path / "general" / "model"
    start = load_start(source)
    settings = make_settings(start.elmo, {**CHANGES, "softmax": {"num_negatives": 2}})
    known = make_corpus(DOMAIN, HELDOUT, vocabulary=start.words)
    report = finetune_model(source, known, tmp_path / "domain", settings=settings)
    assert report.after.perplexity < report.before.perplexity
    with pytest.raises(ModelError, match="--max-new-words 0"):
        finetune_model(source, domain(start.words), tmp_path / "more", settings=settings)


def test_the_card_names_both_texts(tmp_path):
    run(tmp_path / "general", "training.max_steps=4", "model.about.name='general'")
    source = tmp_path / "general" / "model"
    start = load_start(source)
    settings = make_settings(start.elmo, CHANGES)
    finetune_model(source, domain(start.words), tmp_path / "legal", settings=settings)
    card = (tmp_path / "legal" / "model" / "README.md").read_text()
    assert "# legal" in card
    assert "elmore finetune, from general" in card
    assert card.count("of text") == 2


def test_a_published_model_gets_a_softmax(tmp_path):
    write_bilm_tf(tiny.model(tiny.byte_config()), tmp_path / "weights.hdf5")
    start = load_start(tmp_path / "weights.hdf5")
    assert start.words == []
    corpus = make_corpus(DOMAIN, HELDOUT)
    report = finetune_model(
        tmp_path / "weights.hdf5",
        corpus,
        tmp_path / "domain",
        settings=make_settings(start.elmo, CHANGES),
    )
    assert report.before is None
    assert report.after.perplexity < len(corpus.vocabulary)
    assert load_language_model(tmp_path / "domain" / "model").words == corpus.vocabulary


def test_the_rest_state_is_computed_again(tmp_path):
    run(tmp_path / "general", "training.max_steps=4")
    source = tmp_path / "general" / "model"
    start = load_start(source)
    before = start.elmo.bilm.initial_hidden.clone()
    corpus = domain(start.words)
    settings = make_settings(start.elmo, CHANGES)
    finetune_model(source, corpus, tmp_path / "domain", settings=settings)
    after = load_language_model(tmp_path / "domain" / "model").elmo.bilm.initial_hidden
    assert not torch.equal(before, after)
