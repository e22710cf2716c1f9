import pytest
import torch

from elmore.errors import ConfigError, DataError
from elmore.tasks.kinds.classes import TextSettings
from elmore.tasks.kinds.texts import TextTask
from elmore.tasks.networks.biattentive import BiattentiveClassifier
from elmore.text.language import Language
from tests.tasks.networks.class_batches import make_input


def write(folder, text):
    path = folder / "texts.tsv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_has_texts_and_labels(tmp_path):
    task = TextTask(TextSettings(max_tokens=3))
    first, second = task.read(write(tmp_path, "label\ttext\nsport\tIt's a goal!\nlaw\tOverruled\n"))
    assert (first.texts, first.sentences) == (("It's a goal!",), (("It", "'s", "a"),))
    assert (second.sentences, second.label) == ((("Overruled",),), "law")
    assert task.find_labels([first, second]) == ("law", "sport")
    assert task.find_sentences([first, second]) == ([("It", "'s", "a"), ("Overruled",)],)
    assert task.count_tokens(first) == 3
    with pytest.raises(DataError, match=r"texts\.tsv, line 1: expected 2 columns"):
        list(task.read(write(tmp_path, "no label\n")))


def test_names_that_are_not_known_are_not_examples(tmp_path):
    rows = "".join(f"A fine match {number}\tsport\nHe lost his case\tlaw\n" for number in range(3))
    with pytest.raises(DataError, match=r"line 1: 'review kind' looks like column names"):
        list(TextTask(TextSettings()).read(write(tmp_path, "review\tkind\n" + rows)))
    assert len(list(TextTask(TextSettings()).read(write(tmp_path, "Goal\tsport\n" + rows)))) == 7


def test_to_predict_a_text_a_line_will_do(tmp_path):
    task = TextTask(TextSettings())
    plain = task.read_unlabeled(write(tmp_path, "\n It's a goal! \n\nOverruled\n"))
    table = task.read_unlabeled(write(tmp_path, "It's a goal!\tsport\nOverruled\tlaw\n"))
    plain, table = list(plain), list(table)
    assert plain == table
    with pytest.raises(DataError, match=r"line 1: this line names columns, .* label / gold_label"):
        list(task.read(write(tmp_path, "index\tsentence\n0\tIt's a goal!\n")))
    named = "index\tsentence\n0\tIt's a goal!\n1\tOverruled\n"
    assert list(task.read_unlabeled(write(tmp_path, named))) == table
    labels = "Do come in\tsentence\nIs it late?\tquestion\n"
    examples = task.read_unlabeled(write(tmp_path, labels))
    assert [each.texts for each in examples] == [("Do come in",), ("Is it late?",)]
    with pytest.raises(DataError, match=r"line 1: 'Text noun' may be column names or an ex"):
        list(task.read_unlabeled(write(tmp_path, "Text\tnoun\nrun\tverb\n")))
    blank = "text\tlabel\nIt's a goal!\t\nOverruled\t\n"
    assert list(task.read_unlabeled(write(tmp_path, blank))) == table
    with pytest.raises(
        DataError, match=r"line 1: expected 2 columns .* or name the columns in a first"
    ):
        list(task.read_unlabeled(write(tmp_path, "1\tIt's a goal!\tsport\n")))
    assert [(each.texts, each.label) for each in plain] == [
        (("It's a goal!",), None),
        (("Overruled",), None),
    ]
    with pytest.raises(DataError, match="has no texts; give one text per line"):
        list(task.read_unlabeled(write(tmp_path, " \n")))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"hidden_dim": True}, r"task\.hidden_dim is True"),
        ({"dropout": "much"}, r"task\.dropout is 'much'"),
        ({"max_tokens": 0}, r"task\.max_tokens is 0"),
        ({"language": "xx"}, r"task\.language is 'xx'; choose one of: en, zh, zh-chars"),
    ],
)
def test_settings_that_are_invalid_are_named(settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        TextSettings(**settings)


def test_chinese_is_split_by_its_own_rules(tmp_path):
    pytest.importorskip("rjieba")
    settings = TextSettings(language="zh")
    assert settings.language is Language.ZH
    (example,) = TextTask(settings).read_unlabeled(write(tmp_path, "我们喜欢音乐。\n"))
    assert example.sentences == (("我们", "喜欢", "音乐", "。"),)


def test_the_network_has_the_settings_and_json_the_text(tmp_path):
    task = TextTask(TextSettings(hidden_dim=3, dropout=0.2))
    torch.manual_seed(0)
    network = task.build(make_input(), labels=("law", "sport"))
    assert isinstance(network, BiattentiveClassifier)
    assert (network.narrow.out_features, network.token_dropout.rate) == (3, 0.2)
    (example,) = task.read_unlabeled(write(tmp_path, "It's a goal!\n"))
    assert task.to_json(example, {"law": 0.25, "sport": 0.75}) == {
        "text": "It's a goal!",
        "label": "sport",
        "probabilities": {"law": 0.25, "sport": 0.75},
    }
