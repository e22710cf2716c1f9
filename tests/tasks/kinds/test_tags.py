import pytest
import torch

from elmore.errors import ConfigError, DataError
from elmore.settings import read_section
from elmore.tasks.data.columns import TaggedSentence
from elmore.tasks.kinds.tags import TagSettings, TagTask
from tests.tasks.data.places import find_data
from tests.tasks.networks.tagging import fit, make_batch, make_tokens

WORD = "{}\t{}\t_\t{}\t{}\t_\t_\t_\t_\t_\n"


def make_task(**settings):
    return TagTask(TagSettings(**settings))


def write(folder, text, name="text"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_tags_are_those_of_conllu_or_of_a_column(tmp_path):
    conllu = write(tmp_path, WORD.format(1, "EU", "PROPN", "NNP"), "a.conllu")
    columns = write(tmp_path, "EU NNP I-NP\n")
    for settings, path, tag in (
        ({}, conllu, "PROPN"),
        ({"column": "xpos"}, conllu, "NNP"),
        ({"column": 2}, columns, "NNP"),
        ({"column": "last"}, columns, "I-NP"),
    ):
        assert list(make_task(**settings).read(path)) == [TaggedSentence(tokens=["EU"], tags=[tag])]


def test_conllu_has_no_tags_in_its_last_column(tmp_path):
    with pytest.raises(ConfigError, match=r"a\.conllu is CoNLL-U, whose last column has no tags"):
        list(make_task(column="last").read(write(tmp_path, "", "a.conllu")))


def test_words_to_predict_on_need_no_tags(tmp_path):
    task = make_task()
    path = write(tmp_path, WORD.format(1, "EU", "_", "_"), "a.conllu")
    with pytest.raises(DataError, match="has no upos"):
        list(task.read(path))
    assert [example.tokens for example in task.read_unlabeled(path)] == [["EU"]]
    raw = write(tmp_path, "EU said no.\n")
    assert [example.tokens for example in task.read_unlabeled(raw)] == [["EU", "said", "no", "."]]


def test_the_form_and_language_of_words_to_predict_on_can_be_set(tmp_path):
    path = write(tmp_path, "It's x\n")
    (example,) = make_task(text_form="tokenized").read_unlabeled(path)
    assert example.tokens == ["It's", "x"]
    pytest.importorskip("rjieba", reason="needs elmore[chinese]")
    chinese = make_task(language="zh").read_unlabeled(write(tmp_path, "他来。她走。"))
    assert len(list(chinese)) == 2


def test_labels_are_sorted_tags_of_training():
    examples = [
        TaggedSentence(tokens=["a", "b"], tags=["X", "ADJ"]),
        TaggedSentence(tokens=["c"], tags=["X"]),
    ]
    task = make_task()
    assert task.find_labels(iter(examples)) == ("ADJ", "X")
    network = task.build(make_tokens(), labels=("ADJ", "X"))
    gold = task.prepare(examples, labels=("ADJ", "X"), with_gold=True)
    assert network.write(gold[0].tolist()) == ["X", "ADJ"]
    assert task.prepare(examples, labels=("ADJ", "X"), with_gold=False) is None
    assert task.count_tokens(examples[0]) == 2


def test_accuracy_is_that_of_all_tokens_and_new_tags_are_only_wrong():
    task = make_task()
    examples = [
        TaggedSentence(tokens=["a", "b", "c"], tags=["X", "Y", "NEW"]),
        TaggedSentence(tokens=["d"], tags=["X"]),
    ]
    assert task.score(examples, [["X", "Y", "X"], ["Y"]]) == {"accuracy": 50.0}
    features = task.prepare(examples, labels=("X", "Y"), with_gold=True)
    network = task.build(make_tokens(), labels=("X", "Y"))
    assert network.loss(make_batch([each.tokens for each in examples], features)).isfinite()


def test_chunks_are_scored_as_spans_too(tmp_path):
    task = make_task(column=2, scores_spans=True)
    (example,) = task.read(write(tmp_path, "the B-NP\nend I-NP\ncame B-VP\n"))
    scores = task.score([example], [["B-NP", "I-NP", "O"]])
    assert scores["accuracy"] == pytest.approx(100 * 2 / 3)
    assert (scores["precision"], scores["recall"]) == (100, 50)
    assert (scores["f1 NP"], scores["f1 VP"]) == (100, 0)
    with pytest.raises(DataError, match=r"line 1: expected a span tag .* got 'DT'"):
        list(task.read(write(tmp_path, "the DT\n")))
    with pytest.raises(DataError, match=r"text, line 1: expected a span tag \(O, .* got 'M-NP'"):
        list(task.read(write(tmp_path, "the M-NP\n")))


def test_predictions_are_written_next_to_their_tokens():
    example = TaggedSentence(tokens=["a"], tags=[])
    assert make_task().to_json(example, ["X"]) == {"tokens": ["a"], "tags": ["X"]}


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"column": "pos"}, "task.column is 'pos'; .* one of: last, upos, xpos, deprel"),
        ({"column": 1}, "task.column is '1'; give the number of the tags' column, from 2"),
        ({"hidden_dim": 1.5}, "'hidden_dim' in 'task' is 1.5; it must be a whole number"),
        ({"dropout": -0.1}, "task.dropout is -0.1"),
        ({"uses_crf": "no"}, "'uses_crf' in 'task' is 'no'; it must be true or false"),
    ],
)
def test_settings_that_are_invalid_are_named(settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        read_section(TagSettings, "task", settings)


@pytest.mark.parametrize("uses_crf", [True, False])
def test_settings_reach_the_network(uses_crf):
    settings = {"hidden_dim": 7, "num_layers": 2, "dropout": 0.25, "uses_crf": uses_crf}
    network = make_task(**settings).build(make_tokens(), labels=("X", "Y", "Z"))
    assert (network.encoder.output_dim, len(network.encoder.rightward)) == (14, 2)
    assert network.dropout.p == network.encoder.dropout.rate == 0.25
    assert network.uses_crf is uses_crf
    assert network.scorer.out_features == 3


def test_endings_of_words_that_have_no_vector_are_memorized():
    """Only characters tell these words apart."""
    torch.manual_seed(0)
    endings = {"ing": "VERB", "ly": "ADV", "ness": "NOUN"}
    examples = []
    for number in range(50):
        chosen = [list(endings)[(number * step) % 3] for step in (1, 2, 1)]
        tokens = [f"{chr(97 + number % 13)}o{ending}" for ending in chosen]
        examples.append(TaggedSentence(tokens=tokens, tags=[endings[each] for each in chosen]))
    task = make_task(hidden_dim=8, dropout=0.0)
    labels = task.find_labels(examples)
    network = task.build(make_tokens(has_elmo=False), labels=labels)
    features = task.prepare(examples, labels=labels, with_gold=True)
    batch = make_batch(*task.find_sentences(examples), features, has_elmo=False)
    predictions = fit(network, batch, num_steps=40, learning_rate=0.04)
    assert task.score(examples, predictions)["accuracy"] > 98


def test_a_real_treebank_has_its_tags():
    task = make_task()
    examples = list(task.read(find_data("ud_ewt/en_ewt-ud-dev.conllu")))
    assert len(task.find_labels(examples)) == 17
    untagged = list(task.read_unlabeled(find_data("ud_ewt/en_ewt-ud-dev.conllu")))
    assert [each.tokens for each in untagged] == [each.tokens for each in examples]
