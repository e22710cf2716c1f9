"""A network with its words: order of predictions, streaming, batches, and what it may read."""

import itertools

import pytest
import torch

from elmore.errors import ConfigError
from elmore.tasks.data.parts import find_parts
from elmore.tasks.fit import model as model_module
from elmore.tasks.fit.data import read_data
from elmore.tasks.fit.model import (
    TaskModel,
    build_token_input,
    find_batch_size,
    find_words,
    make_task,
)
from elmore.tasks.fit.settings import load_settings
from elmore.tasks.kinds.table import KINDS
from tests.tasks.fit.made_up import make_settings, write_data


def build(folder, *changes):
    settings = make_settings(*changes)
    data = read_data(make_task(settings), find_parts(write_data(folder)))
    torch.manual_seed(0)
    words = find_words(settings, [example.tokens for example in data.train])
    labels = make_task(settings).find_labels(data.train)
    return TaskModel(settings, labels=labels, words=words, layers=None), list(data.train)


def test_predictions_come_in_order_and_do_not_depend_on_batches(tmp_path, monkeypatch):
    model, examples = build(tmp_path)
    together = list(model.predict(examples))
    assert [example for example, _ in together] == examples
    assert all(len(found) == len(example.tokens) for example, found in together)
    assert [next(model.predict([example])) for example in examples] == together
    monkeypatch.setattr(model_module, "EXAMPLES_AT_ONCE", 3)
    assert list(model.predict(iter(examples))) == together


def test_predictions_are_described_with_probabilities(tmp_path):
    model, examples = build(tmp_path, "task.uses_crf=false")
    (_, tags), *_ = model.predict(examples[:1])
    (found,) = model.describe(examples[:1])
    assert found["tags"] == tags
    batch = model.make_batch(examples[:1], with_gold=False)
    with torch.no_grad():
        shares = model.network._score(batch.sentences[0])[0].softmax(dim=1)
    wanted = [float(row[model.labels.index(tag)]) for row, tag in zip(shares, tags, strict=True)]
    assert found["probabilities"] == pytest.approx(wanted, rel=1e-5)


def test_a_span_has_the_probability_of_all_its_tags(tmp_path):
    model, _ = build(tmp_path, "task.uses_crf=true", "task.scores_spans=false")
    example = model.task.parse("a bad cab")
    (chain,) = model.network.predict_chains(model.make_batch([example], with_gold=False))
    content = {
        "tags": [],
        "entities": [{"start": 0, "end": 2}],
        "arguments": [{"start": 2, "end": 3}],
    }
    found = model_module._add_probabilities(content, chain)
    assert found["entities"][0]["probability"] == chain.probability(0, 2)
    assert found["arguments"][0]["probability"] == chain.probability(2, 3)
    assert found["entities"][0]["probability"] < min(found["probabilities"][:2])


def test_predictions_are_streamed(tmp_path, monkeypatch):
    model, examples = build(tmp_path)
    monkeypatch.setattr(model_module, "EXAMPLES_AT_ONCE", 4)
    taken = 0

    def count():
        nonlocal taken
        for example in itertools.cycle(examples):
            taken += 1
            yield example

    found = list(itertools.islice(model.predict(count()), 9))
    assert len(found) == 9
    assert taken == 12


def test_predicting_changes_neither_mode_nor_gradients(tmp_path):
    model, examples = build(tmp_path)
    model.network.train()
    list(model.predict(examples))
    assert model.network.training
    assert model.loss(examples[:2]).requires_grad


def test_gold_is_not_looked_at_when_predicting(tmp_path):
    model, examples = build(tmp_path)
    blank = [type(example)(tokens=example.tokens, tags=[]) for example in examples]
    assert [found for _, found in model.predict(blank)] == [
        found for _, found in model.predict(examples)
    ]


def test_a_network_with_nothing_to_read_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="the network has no input; give it words"):
        build(tmp_path, "words.dim=0", "characters.num_filters=0")


def test_words_come_from_a_file_or_are_learned(tmp_path):
    (tmp_path / "vectors.txt").write_text("bad 1 2 3\nnever 4 5 6\n")
    given = find_words(make_settings(f"words.file={tmp_path}/vectors.txt"), [["Bad", "a"]])
    assert (given.words, given.num_trained) == (["bad", "never"], 3)
    learned = find_words(make_settings("words.min_count=2"), [["a", "b"], ["a"]])
    assert learned.words == ["a"]


def test_a_network_that_reads_one_document_gets_one():
    assert find_batch_size(load_settings("coreference")) == 1
    assert find_batch_size(load_settings("tags", changes=["training.batch_size=7"])) == 7


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_words_without_a_file_learn_whatever_the_task(kind):
    settings = load_settings(kind, changes=["words.min_count=1"])
    words = find_words(settings, [["a", "word"]])
    table = build_token_input(settings, words=words, layers=None).words
    batch = torch.arange(len(words.vectors))
    table(batch).sum().backward()
    changed = {name for name, weight in table.named_parameters() if weight.grad.any()}
    assert changed
    assert sum(weight.numel() for weight in table.parameters()) >= words.vectors[2:].numel()
