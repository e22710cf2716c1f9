import pytest
import torch

from elmore.errors import ConfigError, DataError
from elmore.tasks.kinds.classes import TextSettings
from elmore.tasks.kinds.entailment import (
    EntailmentTask,
    PairTask,
)
from elmore.tasks.networks.esim import ESIM
from tests.tasks.data.places import find_data
from tests.tasks.networks.class_batches import make_input

HEADER = "gold_label\tsentence1\tsentence2\n"
ROWS = "neutral\tA man's asleep.\tHe dreams.\n-\tA\tB\nentailment\tA man's asleep.\tHe sleeps.\n"


def write(folder, text):
    path = folder / "pairs.tsv"
    path.write_text(text, encoding="utf-8")
    return path


def test_pairs_are_split_into_tokens(tmp_path):
    task = EntailmentTask(TextSettings())
    first, second = task.read(write(tmp_path, HEADER + ROWS))
    assert first.texts == ("A man's asleep.", "He dreams.")
    assert first.sentences == (("A", "man", "'s", "asleep", "."), ("He", "dreams", "."))
    assert [first.label, second.label] == ["neutral", "entailment"]
    assert task.count_tokens(first) == 8
    assert task.find_labels([first, second]) == ("entailment", "neutral")  # as SNLI orders them
    premises, hypotheses = task.find_sentences([first, second])
    assert premises == [first.sentences[0]] * 2
    assert hypotheses == [first.sentences[1], second.sentences[1]]


def test_only_pairs_have_labels_of_any_name(tmp_path):
    path = write(tmp_path, "A b c\tB\tsame\nC\tD\tother\n")
    with pytest.raises(DataError, match=r"line 1: the label 'same' is not one of entailment"):
        list(EntailmentTask(TextSettings()).read(path))
    task = PairTask(TextSettings(max_tokens=2))
    examples = list(task.read(path))
    assert examples[0].sentences == (("A", "b"), ("B",))
    assert task.find_labels(examples) == ("other", "same")


@pytest.mark.parametrize("task", [EntailmentTask(TextSettings()), PairTask(TextSettings())])
@pytest.mark.parametrize(
    "text",
    [
        "A man's asleep.\tHe dreams.\n\nA man's asleep. \tHe sleeps.\n",
        "Premise\tHypothesis\nA man's asleep.\tHe dreams.\nA man's asleep.\tHe sleeps.\n",
        "sentence1\tsentence2\nA man's asleep.\tHe dreams.\nA man's asleep.\tHe sleeps.\n",
        "A man's asleep.\tHe dreams.\tx\nA man's asleep.\tHe sleeps.\ty\n",
        "gold_label\tsentence1\tsentence2\n-\tA man's asleep.\tHe dreams.\n"
        "\tA man's asleep.\tHe sleeps.\n",
        "index\tsentence1\tsentence2\n0\tA man's asleep.\tHe dreams.\n"
        "1\tA man's asleep.\tHe sleeps.\n",
    ],
)
def test_to_predict_labels_may_be_there_or_not(tmp_path, task, text):
    examples = list(task.read_unlabeled(write(tmp_path, text)))
    assert [each.texts for each in examples] == [
        ("A man's asleep.", "He dreams."),
        ("A man's asleep.", "He sleeps."),
    ]
    assert {each.label for each in examples} == {None}


def test_only_the_first_line_names_columns(tmp_path):
    path = write(tmp_path, "A\tB\nPremise\tHypothesis\n")
    texts = [each.texts for each in EntailmentTask(TextSettings()).read_unlabeled(path)]
    assert texts == [("A", "B"), ("Premise", "Hypothesis")]


def test_lines_that_are_not_pairs_are_reported(tmp_path):
    for line in ("A", "A\tB\tC", "A\t "):
        with pytest.raises(DataError, match=r"pairs\.tsv, line 3: expected .* (got \d|is empty)"):
            list(
                EntailmentTask(TextSettings()).read_unlabeled(write(tmp_path, f"A\tB\n\n{line}\n"))
            )
    for text in ("", "One text only.\n"):
        with pytest.raises(DataError, match=r"pairs\.tsv"):
            list(EntailmentTask(TextSettings()).read_unlabeled(write(tmp_path, text)))
    with pytest.raises(DataError, match=r"pairs\.tsv has no pairs"):
        list(
            EntailmentTask(TextSettings()).read_unlabeled(write(tmp_path, "premise\thypothesis\n"))
        )


@pytest.mark.parametrize(
    ("kind", "settings", "complaint"),
    [
        (TextSettings, {"hidden_dim": 0}, r"task\.hidden_dim is 0"),
        (TextSettings, {"dropout": -0.1}, r"task\.dropout is -0\.1"),
        (TextSettings, {"hidden_dim": 1.5}, r"task\.hidden_dim is 1\.5"),
        (TextSettings, {"dropout": float("nan")}, r"task\.dropout is nan"),
        (TextSettings, {"max_tokens": 0}, r"task\.max_tokens is 0"),
        (TextSettings, {"language": "xx"}, r"task\.language is 'xx'; choose one of: en, zh"),
    ],
)
def test_settings_that_are_invalid_are_named(kind, settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        kind(**settings)


@pytest.mark.parametrize(
    "task",
    [
        EntailmentTask(TextSettings(hidden_dim=3, dropout=0.2)),
        PairTask(TextSettings(hidden_dim=3, dropout=0.2)),
    ],
)
def test_the_network_has_the_settings_and_json_the_pair(tmp_path, task):
    torch.manual_seed(0)
    network = task.build(make_input(), labels=("yes", "no"))
    assert isinstance(network, ESIM)
    assert (network.narrow.out_features, network.token_dropout.rate) == (3, 0.2)
    (example,) = task.read_unlabeled(write(tmp_path, "A man's asleep.\tHe sleeps.\n"))
    assert task.to_json(example, {"yes": 0.75, "no": 0.25}) == {
        "premise": "A man's asleep.",
        "hypothesis": "He sleeps.",
        "label": "yes",
        "probabilities": {"yes": 0.75, "no": 0.25},
    }


def test_snli_has_its_pairs():
    examples = list(EntailmentTask(TextSettings()).read(find_data("snli/cad_revised_test.tsv")))
    assert len(examples) == 1_600
    assert all(sentence for example in examples for sentence in example.sentences)
