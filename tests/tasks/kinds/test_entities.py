import json
import warnings

import pytest
import torch

from elmore.errors import ConfigError, DataError, DataWarning
from elmore.settings import read_section
from elmore.tasks.data.columns import TaggedSentence
from elmore.tasks.data.untagged import UntaggedForm
from elmore.tasks.kinds.entities import EntitySettings, EntityTask
from elmore.tasks.metrics.tag_schemes import Span, TagScheme, read_spans, write_tags
from elmore.text.language import Language
from tests.tasks.data.places import find_data
from tests.tasks.networks.tagging import fit, make_batch, make_tokens

# Neighbors of one type, of two, a name alone and a long one.
SPANS = [
    ("mr Ray Ray in Rome", [Span(1, 2, "PER"), Span(2, 3, "PER"), Span(4, 5, "LOC")]),
    ("New York City and Ray said", [Span(0, 3, "LOC"), Span(4, 5, "PER")]),
    ("Rome Ray", [Span(0, 1, "LOC"), Span(1, 2, "PER")]),
    ("said the", []),
]


def make_task(**settings):
    return EntityTask(EntitySettings(**settings))


def make_examples(scheme):
    examples = []
    for text, spans in SPANS:
        tokens = text.split()
        tags = write_tags(spans, num_tokens=len(tokens), scheme=scheme)
        examples.append(TaggedSentence(tokens=tokens, tags=tags))
    return examples


def write(folder, text, name="text"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("line", ["EU I-ORG", "EU NNP I-ORG", "EU\tNNP\tI-NP\tI-ORG"])
def test_tags_are_in_the_last_column_however_many_there_are(tmp_path, line):
    path = write(tmp_path, f"-DOCSTART- -X- O\n\n{line}\n\n")
    assert list(make_task().read(path)) == [TaggedSentence(tokens=["EU"], tags=["I-ORG"])]


def test_another_column_and_positions_in_words_can_be_set(tmp_path):
    path = write(tmp_path, "EU NNP I-NP I-ORG\n")
    (sentence,) = make_task(column=3).read(path)
    assert sentence.tags == ["I-NP"]
    path = write(tmp_path, "科0\tB-ORG\n技1\tI-ORG\n")
    (sentence,) = make_task(is_numbered=True).read(path)
    assert sentence.tokens == ["科", "技"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("EU\n", "text, line 1: expected a token and its tag, got one column .'EU'"),
        (
            "EU O\n\nEU B-A\nis M-A\n",
            "text, line 4: expected a span tag .O, .* got 'M-A'",
        ),
        ("EU O\nis VB\n", "text, line 2: expected a span tag .* got 'VB'"),
        ("\n", "has no tagged sentence"),
    ],
)
def test_files_that_cannot_be_read_are_named_with_the_position(tmp_path, text, complaint):
    with pytest.raises(DataError, match=complaint):
        list(make_task().read(write(tmp_path, text)))


def test_conllu_has_no_entities(tmp_path):
    with pytest.raises(ConfigError, match=r"a\.conllu is CoNLL-U, whose last column has no tags"):
        list(make_task().read(write(tmp_path, "", "a.conllu")))


@pytest.mark.parametrize("learned", ["bioes", "iob2"])
@pytest.mark.parametrize("scheme", TagScheme)
def test_tags_come_back_in_the_scheme_of_the_data(scheme, learned):
    task = make_task(learned_scheme=learned)
    examples = make_examples(scheme)
    labels = task.find_labels(iter(examples))
    assert labels == (scheme, "LOC", "PER")
    assert json.loads(json.dumps(labels)) == list(labels)
    gold = task.prepare(examples, labels=labels, with_gold=True)
    network = task.build(make_tokens(), labels=labels)
    assert len(network.crf.starts) == (9 if learned == "bioes" else 5)
    for example, numbers in zip(examples, gold.tolist(), strict=True):
        assert network.write(numbers[: len(example.tokens)]) == example.tags
    # And what is learned is allowed, so that a loss is that of a probability.
    assert network.loss(make_batch(*_batch_of(task, examples, labels))).item() < 100


def _batch_of(task, examples, labels, *, with_gold=True):
    (sentences,) = task.find_sentences(examples)
    return sentences, task.prepare(examples, labels=labels, with_gold=with_gold)


def test_a_scheme_can_be_given_and_then_is_written():
    labels = make_task(scheme="iob2").find_labels(make_examples(TagScheme.BIOES))
    assert labels == ("iob2", "LOC", "PER")


def test_data_without_entities_is_refused():
    sentences = [TaggedSentence(tokens=["a"], tags=["O"])]
    for settings in ({}, {"scheme": "iob2"}):
        with pytest.raises(DataError, match=r"has no entity: .* set task\.column to"):
            make_task(**settings).find_labels(iter(sentences))


def test_errors_are_read_as_conlleval_reads_them():
    """In IOB2: a name that begins with I-, and one whose type changes inside."""
    task = make_task()
    slip = TaggedSentence(tokens=list("abcd"), tags=["I-PER", "O", "B-LOC", "I-PER"])
    with pytest.warns(DataWarning, match=r"token 1: 'I-PER' where iob2 expects 'B-PER'; .*1 of 4"):
        labels = task.find_labels([*make_examples(TagScheme.IOB2), slip])
    assert labels[0] == "iob2"
    sentences, features = _batch_of(task, [slip], labels)
    network = task.build(make_tokens(), labels=labels)
    assert network.write(features[0].tolist()) == ["B-PER", "O", "B-LOC", "B-PER"]
    assert network.loss(make_batch(sentences, features)).item() < 100
    assert task.score([slip], [["B-PER", "O", "B-LOC", "B-PER"]])["f1"] == 100


def test_scores_are_conllevals():
    task = make_task()
    examples = make_examples(TagScheme.IOB1)
    predictions = [list(example.tags) for example in examples]
    predictions[0] = ["O", "I-PER", "I-PER", "O", "I-PER"]  # two joined, one of the wrong type
    scores = task.score(examples, predictions)
    # 7 to find, 6 predicted, of which 4 are right; LOC 2 of 3 and 2, PER 2 of 4 and 4.
    assert scores == pytest.approx(
        {
            "f1": 100 * 2 * 4 / (7 + 6),
            "precision": 100 * 4 / 6,
            "recall": 100 * 4 / 7,
            "f1 LOC": 100 * 2 * 2 / (3 + 2),
            "f1 PER": 100 * 2 * 2 / (4 + 4),
        }
    )
    assert task.main_score in scores


def test_types_that_training_does_not_have_are_only_wrong():
    task = make_task()
    labels = task.find_labels(make_examples(TagScheme.IOB2))
    new = TaggedSentence(tokens=["EU", "Ray"], tags=["B-ORG", "B-PER"])
    sentences, features = _batch_of(task, [new], labels)
    network = task.build(make_tokens(), labels=labels)
    assert network.loss(make_batch(sentences, features)).item() == 0
    assert task.score([new], [["O", "B-PER"]])["recall"] == 50


def test_predictions_become_entities_next_to_their_text():
    example = TaggedSentence(tokens=["New", "York", "said"], tags=[])
    tags = ["I-LOC", "I-LOC", "O"]
    entity = {"start": 0, "end": 2, "type": "LOC", "text": "New York"}
    found = make_task().to_json(example, tags)
    assert found == {"tokens": example.tokens, "tags": tags, "entities": [entity]}
    chinese = TaggedSentence(tokens=list("在北京。"), tags=[])
    assert make_task().to_json(chinese, ["O", *tags])["entities"][0]["text"] == "北京"
    for settings in ({"is_numbered": True}, {"language": "zh"}):
        assert make_task(**settings).to_json(example, tags)["entities"][0]["text"] == "NewYork"


def test_sentences_to_predict_on_are_read_as_the_settings_say(tmp_path):
    for settings, text, wanted in (
        ({}, "EU\tx\nsaid\t?\nno\t-\n", ["EU", "said", "no"]),
        ({"is_numbered": True}, "科0 O\n技1 O\n部2 O\n", ["科", "技", "部"]),
        ({"text_form": "tokenized"}, "EU x\n", ["EU", "x"]),
        ({"text_form": "raw"}, "It's x\n", ["It", "'s", "x"]),
    ):
        (example,) = make_task(**settings).read_unlabeled(write(tmp_path, text))
        assert example == TaggedSentence(tokens=wanted, tags=[])


def test_sentences_to_predict_on_are_split_by_the_rules_of_their_language(tmp_path):
    pytest.importorskip("rjieba", reason="needs elmore[chinese]")
    path = write(tmp_path, "他来。她走。")
    assert len(list(make_task(language="zh").read_unlabeled(path))) == 2
    assert len(list(make_task(language="en").read_unlabeled(path))) == 1


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"column": 1}, "task.column is '1'; give the number of the tags' column, from 2"),
        ({"column": "first"}, "task.column is 'first'"),
        ({"column": True}, "'column' in 'task' is True; it must be text or a whole number"),
        ({"scheme": "iob"}, "task.scheme is 'iob'; choose one of: iob1, iob2, bioes, bilou"),
        ({"learned_scheme": "iob1"}, "task.learned_scheme is 'iob1'; choose one of: iob2, bioes"),
        ({"hidden_dim": 0}, "task.hidden_dim is 0"),
        ({"num_layers": 0}, "task.num_layers is 0"),
        ({"dropout": 1.0}, "task.dropout is 1.0; give a number from 0 to 0.99"),
        ({"text_form": "pdf"}, "task.text_form is 'pdf'; choose one of: auto, columns"),
        ({"language": "fr"}, "task.language is 'fr'"),
    ],
)
def test_settings_that_are_invalid_are_named(settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        read_section(EntitySettings, "task", settings)


def test_settings_are_taken_as_toml_gives_them():
    given = {"column": 4, "scheme": "iob1", "text_form": "raw", "language": "zh"}
    settings = read_section(EntitySettings, "task", given)
    assert settings.column == "4"
    assert settings.scheme is TagScheme.IOB1
    assert settings.text_form is UntaggedForm.RAW
    assert settings.language is Language.ZH
    assert settings.learned_scheme is TagScheme.BIOES


@pytest.mark.parametrize("uses_crf", [True, False])
def test_settings_reach_the_network(uses_crf):
    settings = {"hidden_dim": 7, "num_layers": 2, "dropout": 0.25, "uses_crf": uses_crf}
    network = make_task(**settings).build(make_tokens(), labels=("iob2", "LOC", "PER"))
    assert (network.encoder.output_dim, len(network.encoder.rightward)) == (14, 2)
    assert network.dropout.p == network.encoder.dropout.rate == 0.25
    assert network.uses_crf is uses_crf
    assert network.scorer.out_features == 9


def test_what_is_predicted_is_whole_entities():
    """Whatever an untrained network would say, its steps follow the scheme that is learned."""
    torch.manual_seed(0)
    task = make_task(hidden_dim=5)
    labels = ("bioes", "LOC", "PER")
    network = task.build(make_tokens(), labels=labels).eval()
    with torch.no_grad():
        network.scorer.weight.mul_(20)
        sentences = [[f"{word}{number}" for word in "abcdefg"] for number in range(20)]
        features = task.prepare([], labels=labels, with_gold=False)
        numbers = network.crf.decode(*_scores_of(network, make_batch(sentences, features)))
    learned = task._list_learned(labels)
    for tags in ([learned[number] for number in each] for each in numbers):
        assert write_tags(read_spans(tags), num_tokens=7, scheme=TagScheme.BIOES) == tags


def _scores_of(network, batch):
    (sentences,) = batch.sentences
    return network._score(sentences), sentences.lengths


def make_names(num_sentences):
    """Return sentences in IOB1; names of people follow "mr", those of places "in"."""
    examples = []
    for number in range(num_sentences):
        length = 1 + number % 3
        name = [f"N{number % 11}"] * length
        mark, tag = ("mr", "I-PER") if number % 2 else ("in", "I-LOC")
        after = [f"N{number % 5}"] if number % 4 == 3 else ["said"]
        tags = ["O", *[tag] * length, "B-PER" if number % 4 == 3 else "O", "O"]
        examples.append(TaggedSentence(tokens=[mark, *name, *after, "and"], tags=tags))
    return examples


@pytest.mark.slow
def test_fifty_sentences_are_memorized():
    torch.manual_seed(0)
    task = make_task(hidden_dim=12, dropout=0.0)
    examples = make_names(50)
    labels = task.find_labels(examples)
    network = task.build(make_tokens(has_elmo=False), labels=labels)
    batch = make_batch(*_batch_of(task, examples, labels), has_elmo=False)
    predictions = fit(network, batch, num_steps=60, learning_rate=0.04)
    assert labels == ("iob1", "LOC", "PER")
    assert task.score(examples, predictions)["f1"] > 98


@pytest.mark.parametrize(
    ("name", "settings", "labels", "num_slips"),
    [
        ("conll2003/eng.testb", {}, ("iob1", "LOC", "MISC", "ORG", "PER"), 0),
        (
            "chinese/weibo_ner/test.conll",
            {},
            (
                *("iob2", "GPE.NAM", "GPE.NOM", "LOC.NAM", "LOC.NOM", "ORG.NAM", "ORG.NOM"),
                *("PER.NAM", "PER.NOM"),
            ),
            4,
        ),
    ],
)
def test_real_data_comes_back_as_it_was_except_for_errors(name, settings, labels, num_slips):
    task = make_task(**settings)
    examples = list(task.read(find_data(name)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert task.find_labels(examples) == labels
    assert len(caught) == bool(num_slips)
    network = task.build(make_tokens(), labels=labels)
    num_changed = 0
    for example in examples:
        (numbers,) = task.prepare([example], labels=labels, with_gold=True).tolist()
        assert read_spans(network.write(numbers)) == read_spans(example.tags)
        num_changed += network.write(numbers) != example.tags
    assert num_changed == num_slips  # tags that IOB2 does not allow
    # Read without their tags, the sentences are the same.
    untagged = list(task.read_unlabeled(find_data(name)))
    assert [each.tokens for each in untagged] == [each.tokens for each in examples]
