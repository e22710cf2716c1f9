import pytest
import torch

from elmore.errors import ConfigError, DataError
from elmore.tasks.kinds.sentiment import SentimentSettings, SentimentTask
from elmore.tasks.networks.biattentive import BiattentiveClassifier
from tests.tasks.data.places import find_data
from tests.tasks.networks.class_batches import make_input

GOOD = "(4 (2 It) (3 (3 (2 (2 's) (2 very)) (4 good)) (2 -LRB-)))"
NEUTRAL = "(2 (2 It) (0 (1 fails)))"
BAD = "(0 Awful)"


def write(folder, *lines):
    path = folder / "text.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def read(path, **settings):
    examples = SentimentTask(SentimentSettings(**settings)).read(path)
    return [(each.texts[0], each.label) for each in examples]


def read_training(path, **settings):
    examples = SentimentTask(SentimentSettings(**settings)).read_training(path)
    return [(each.texts[0], each.label) for each in examples]


def test_sentences_have_the_names_of_their_labels(tmp_path):
    path = write(tmp_path, GOOD, "", NEUTRAL, BAD)
    assert read(path) == [
        ("It 's very good (", "very positive"),
        ("It fails", "neutral"),
        ("Awful", "very negative"),
    ]
    assert read(path, classes=2) == [
        ("It 's very good (", "positive"),
        ("Awful", "negative"),
    ]


def test_phrases_are_learned_from_but_not_scored(tmp_path):
    path = write(tmp_path, GOOD, NEUTRAL)
    assert read(path, phrases="all") == read(path)
    assert read_training(path) == read(path)
    assert read_training(path, phrases="all") == [
        ("It 's very good (", "very positive"),
        ("'s very good (", "positive"),
        ("It fails", "neutral"),
    ]
    # In two classes, phrases count that are not neutral, even of sentences that are.
    assert read_training(path, phrases="all", classes=2, min_phrase_tokens=1) == [
        ("It 's very good (", "positive"),
        ("'s very good (", "positive"),
        ("'s very good", "positive"),
        ("good", "positive"),
        ("fails", "negative"),
        ("fails", "negative"),
    ]


def test_labels_go_from_negative_to_positive(tmp_path):
    for settings, wanted in [
        (SentimentSettings(), ("very negative", "neutral", "very positive")),
        (SentimentSettings(classes=2), ("negative", "positive")),
    ]:
        task = SentimentTask(settings)
        assert task.find_labels(task.read(write(tmp_path, GOOD, NEUTRAL, BAD))) == wanted


def test_to_predict_trees_or_text_will_do(tmp_path):
    task = SentimentTask(SentimentSettings(classes=2))
    trees = list(task.read_unlabeled(write(tmp_path, GOOD, NEUTRAL)))
    assert [each.sentences[0] for each in trees] == [
        ("It", "'s", "very", "good", "("),
        ("It", "fails"),
    ]
    assert {each.label for each in trees} == {None}
    lines = ["(2 of them) isn't bad.", "", GOOD]
    first, second = task.read_unlabeled(write(tmp_path, *lines))
    assert first.texts == ("(2 of them) isn't bad.",)
    assert first.sentences[0][-4:] == ("is", "n't", "bad", ".")
    assert second.texts == (GOOD,)
    (one,) = task.read_unlabeled(write(tmp_path, BAD))
    assert one.texts == ("Awful",)
    (row,) = task.read_unlabeled(write(tmp_path, "Not bad.\tpositive"))
    assert row.texts == ("Not bad.",)


def test_what_cannot_be_read_is_reported(tmp_path):
    task = SentimentTask(SentimentSettings(classes=2))
    with pytest.raises(DataError, match=r"has only neutral sentences; set task\.classes=5"):
        list(task.read(write(tmp_path, NEUTRAL)))
    with pytest.raises(DataError, match=r"text\.txt, line 2: "):
        list(task.read_unlabeled(write(tmp_path, GOOD, "(3 (2 Very)")))
    with pytest.raises(DataError, match="has no texts; give one text per line"):
        list(task.read_unlabeled(write(tmp_path, "")))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"hidden_dim": 0}, r"task\.hidden_dim is 0; give a whole number"),
        ({"dropout": 1.0}, r"task\.dropout is 1\.0; give a number from 0 to 0\.99"),
        ({"classes": 3}, r"task\.classes is 3; give 5 or 2"),
        ({"phrases": "some"}, r"task\.phrases is 'some'; choose one of: root, all"),
        ({"min_phrase_tokens": 0}, r"task\.min_phrase_tokens is 0"),
    ],
)
def test_settings_that_are_invalid_are_named(settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        SentimentSettings(**settings)


def test_the_network_has_the_settings_and_labels():
    task = SentimentTask(SentimentSettings(hidden_dim=3, dropout=0.2))
    torch.manual_seed(0)
    network = task.build(make_input(), labels=("negative", "positive"))
    assert isinstance(network, BiattentiveClassifier)
    assert network.labels == ("negative", "positive")
    assert network.narrow.out_features == 3
    assert network.token_dropout.rate == 0.2


def test_json_has_text_label_and_probabilities(tmp_path):
    task = SentimentTask(SentimentSettings())
    example = next(task.read(write(tmp_path, GOOD)))
    assert task.to_json(example, {"negative": 0.75, "positive": 0.25}) == {
        "text": "It 's very good (",
        "label": "negative",
        "probabilities": {"negative": 0.75, "positive": 0.25},
    }


@pytest.mark.parametrize(
    ("settings", "num_examples"), [({}, 1_101), ({"classes": 2}, 872), ({"phrases": "all"}, 1_101)]
)
def test_the_treebank_has_its_sentences(settings, num_examples):
    assert len(read(find_data("sst/dev.txt"), **settings)) == num_examples


def test_the_treebank_has_all_labels():
    task = SentimentTask(SentimentSettings(phrases="all"))
    examples = list(task.read_training(find_data("sst/dev.txt")))
    assert len(examples) > 10_000
    assert len(task.find_labels(examples)) == 5
