"""Data that can hardly be meant is refused with what is wrong; real data never is."""

import importlib.resources
import warnings
from itertools import chain
from pathlib import Path

import pytest

from elmore.errors import DataWarning
from elmore.tasks.data.parts import Parts, find_parts
from elmore.tasks.fit.data import read_data
from elmore.tasks.fit.label_plausibility import (
    MIN_MEANT_IN_TRAINING,
    MIN_MEANT_PER_TYPO,
    is_slip,
)
from elmore.tasks.fit.model import make_task
from elmore.tasks.fit.plausibility import ImplausibleDataError, check_data
from elmore.tasks.fit.settings import load_settings
from elmore.weights.loading import load_model
from elmore.weights.seen_characters import find_seen_characters
from tests.tasks.data.places import find_data
from tests.tasks.fit.made_up import Place, Watcher

SHIPPED = Path(str(importlib.resources.files("elmore"))) / "models" / "english"
ENGLISH = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,?!'")


def find(folder, kind, train, *changes, dev=None, seen=ENGLISH):
    """Return the findings of data that is as given."""
    folder.mkdir(exist_ok=True)
    (folder / "train.txt").write_text(train, encoding="utf-8")
    (folder / "dev.txt").write_text(train if dev is None else dev, encoding="utf-8")
    task = make_task(load_settings(kind, changes=changes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        data = read_data(task, find_parts(folder))
    try:
        check_data(task, data, seen_characters=seen)
    except ImplausibleDataError as error:
        return error.findings
    return []


def make_texts(number, *, label_first=False):
    pairs = [(f"text number {n} is here", "good" if n % 2 else "bad") for n in range(number)]
    return "".join(
        f"{label}\t{text}\n" if label_first else f"{text}\t{label}\n" for text, label in pairs
    )


def make_entities(number):
    return "".join(f"Ann{n} B-PER\nleft O\nRome B-LOC\n. O\n\n" for n in range(number))


def test_plausible_data_has_no_findings(tmp_path):
    assert find(tmp_path, "texts", make_texts(100)) == []
    assert find(tmp_path, "entities", make_entities(100)) == []


def test_texts_in_the_label_s_column_are_found(tmp_path):
    (finding,) = find(tmp_path, "texts", make_texts(160, label_first=True))
    assert finding.startswith("the 160 training examples have 160 different labels, such as 'text ")
    assert "another column" in finding


def test_few_examples_of_a_few_labels_are_not_swapped_columns(tmp_path):
    train = "".join(f"text of {n}\tlabel{n}\n" for n in range(15))
    assert find(tmp_path, "texts", train) == []


def test_tags_in_the_tokens_column_are_found(tmp_path):
    train = "".join(f"{'NOUN' if n % 2 else 'VERB'} word{n}\n\n" for n in range(60))
    (finding,) = find(tmp_path, "tags", train, "task.column=2")
    assert finding.startswith("training has 60 different tags for 2 different tokens")


def test_a_typo_in_a_tag_is_found_with_its_position(tmp_path):
    train = make_entities(60) + "Ben I-PRE\nleft O\n"
    (finding,) = find(tmp_path, "entities", train)
    assert finding == (
        "the label 'PRE' occurs 1 time in training, and 'PER' 60 times, so it is probably a typo "
        f"(first in {tmp_path / 'train.txt'}, the sentence from line 301)"
    )


def test_a_typo_in_a_label_is_found(tmp_path):
    train = "".join(f"text {n} here\t{'positive' if n % 2 else 'negative'}\n" for n in range(120))
    (finding,) = find(tmp_path, "texts", train + "it is fine\tpostive\n")
    assert "'postive' occurs 1 time in training, and 'positive' 60 times" in finding
    assert finding.endswith("(first in the text 'it is fine')")


def test_a_typo_in_a_short_label_is_found_where_there_are_few_labels(tmp_path):
    train = make_choices(120, ["pos", "neg"]) + "it is fine\tposs\n"
    (finding,) = find(tmp_path, "texts", train)
    assert "'poss' occurs 1 time in training, and 'pos' 60 times" in finding
    many = make_choices(1200, ["obj", *(f"label{letter}" for letter in "abcdefghijk")])
    assert find(tmp_path, "texts", many + "it is fine\tiobj\n") == []


def test_a_rare_label_is_a_typo_only_beside_many_of_a_similar_one(tmp_path):
    rows = [f"text {n} here\t{'negative' if n % 2 else 'sports'}\n" for n in range(400)]
    few = [f"another {n}\tpositive\n" for n in range(MIN_MEANT_PER_TYPO - 1)]
    assert find(tmp_path, "texts", "".join([*rows, *few, "one more\tpostive\n"])) == []
    assert find(tmp_path, "texts", "".join([*rows, "one more\tpolitics\n"])) == []
    assert find(tmp_path, "texts", "".join([*rows, *few, "again\tnegatve\n" * 3])) == []


def make_choices(number, labels):
    return "".join(f"text {n} is here\t{labels[n % len(labels)]}\n" for n in range(number))


def test_a_typo_that_only_dev_has_is_found_with_its_position(tmp_path):
    num_train = 2 * MIN_MEANT_IN_TRAINING
    train = make_choices(num_train, ["positive", "negative"])
    dev = make_choices(20, ["positive", "negative"]) + "it is fine\tpostive\n" * 3
    (finding,) = find(tmp_path, "texts", train, dev=dev)
    assert finding == (
        "the label 'postive' occurs 3 times in dev and never in training, which has 'positive' "
        f"{MIN_MEANT_IN_TRAINING} times, so it is probably a typo (first in the text 'it is fine')"
    )
    few = make_choices(num_train - 2, ["positive", "negative"])
    assert find(tmp_path, "texts", few, dev=dev) == []
    (finding,) = find(
        tmp_path, "entities", make_entities(60), dev=make_entities(9) + "Ben B-PRE\nran O\n"
    )
    assert "'PRE' occurs 1 time in dev" in finding
    assert finding.endswith(f"(first in {tmp_path / 'dev.txt'}, the sentence from line 46)")


def test_labels_that_differ_only_in_case_are_found_however_frequent(tmp_path):
    train = make_choices(90, ["Positive", "positive", "negative"])
    (finding,) = find(tmp_path, "texts", train)
    assert finding == (
        "the label 'Positive' occurs 30 times in training, and 'positive' 30 times, so they are "
        "probably one label in two spellings (first in the text 'text 0 is here')"
    )
    dev = make_choices(40, ["Positive", "Negative"])
    findings = find(tmp_path, "texts", make_choices(40, ["positive", "negative"]), dev=dev)
    assert [finding.split(" in dev")[0] for finding in findings] == [
        "the label 'Negative' occurs 20 times",
        "the label 'Positive' occurs 20 times",
    ]
    assert find(tmp_path, "texts", make_choices(40, ["a", "A", "b"])) == []


@pytest.mark.parametrize(
    ("label", "meant", "is_one"),
    [
        *(("Positive", "positive", True), ("PRE", "PER", True), ("LCO", "LOC", True)),
        *(("neutrl", "neutral", True), ("neutrall", "neutral", True), ("neutrel", "neutral", True)),
        *(("positiv", "positive", True), ("xpositive", "positive", True)),
        # Labels of real tag sets that differ by a letter and mean something else.
        *(("NFP", "NNP", False), ("WP$", "WP", False), ("iobj", "obj", False)),
        *(("ARG5", "ARG4", False), ("C-ARG1", "R-ARG1", False), ("PER.NAM", "PER.NOM", False)),
        *(("csubj:pass", "nsubj:pass", False), ("xcomp", "ccomp", False), ("10", "01", False)),
        *(("very positive", "positive", False), ("B", "A", False), ("", "positive", False)),
        *(("class1", "class2", False), ("positive", "negative", False)),
    ],
)
def test_a_slip_is_case_or_a_swap_or_in_a_word_one_letter(label, meant, is_one):
    assert is_slip(label, meant) is is_one


@pytest.mark.parametrize("part", ["train", "dev"])
def test_lost_blank_lines_are_found_in_each_part(tmp_path, part):
    whole = make_entities(100)
    cut = whole.replace("\n\n", "\n")
    train, dev = (cut, whole) if part == "train" else (whole, cut)
    (finding,) = find(tmp_path, "entities", train, dev=dev)
    assert finding.startswith(f"in {part}, a sentence of 400 tokens has 99 full stops within it")
    assert finding.endswith(f"({tmp_path / part}.txt, the sentence from line 1)")


def lose_blank_lines(text, *, which):
    """Join sentences: the break after sentence n is lost if which(n)."""
    sentences = text.split("\n\n")
    breaks = ["\n" if which(n) else "\n\n" for n in range(len(sentences))]
    return "".join(chain.from_iterable(zip(sentences, breaks, strict=True)))


@pytest.mark.parametrize("part", ["train", "dev"])
@pytest.mark.parametrize("which", [lambda n: n % 2, lambda n: n % 4, lambda n: n % 3 == 0])
def test_some_lost_blank_lines_are_found_in_each_part(tmp_path, part, which):
    whole = make_entities(100)
    cut = lose_blank_lines(whole, which=which)
    train, dev = (cut, whole) if part == "train" else (whole, cut)
    (finding,) = find(tmp_path, "entities", train, dev=dev)
    num_lost = sum(bool(which(n)) for n in range(99))
    assert finding.startswith(
        f"in {part}, another sentence follows within the same example after {num_lost} of 100 full "
        "stops, so some blank lines"
    )
    assert f"(first in {tmp_path / part}.txt, the sentence from line " in finding


def test_posts_of_several_sentences_are_not_lost_blank_lines(tmp_path):
    posts = "".join(f"Ann{n} B-PER\n! O\nRome B-LOC\n. O\nso O\nnice O\n\n" for n in range(60))
    assert find(tmp_path, "entities", posts) == []
    abbreviations = "".join(
        f"Ann{n} B-PER\n. O\nand O\n. O\n5 O\nleft O\n. O\n\n" for n in range(60)
    )
    assert find(tmp_path, "entities", abbreviations) == []


def test_a_long_sentence_is_not_a_lost_blank_line(tmp_path):
    long = "and O\n" * 600 + ". O\n\n"
    assert find(tmp_path, "entities", make_entities(20) + long) == []


def test_columns_read_as_texts_are_found(tmp_path):
    train = "".join(f"word{n}\t{'NOUN' if n % 2 else 'VERB'}\n" for n in range(200))
    (finding,) = find(tmp_path, "texts", train)
    assert finding.startswith("200 of 200 training texts are a single token")


def test_chinese_texts_that_are_not_segmented_are_found(tmp_path):
    train = "".join(f"这部电影真的非常好看{'也' * (n % 5)}，值得\t{n % 2}\n" for n in range(100))
    seen = frozenset(train)
    (finding,) = find(tmp_path, "texts", train, seen=seen)
    assert finding.startswith("Chinese tokens such as '这部电影真的非常好看也也也也' have ")
    assert "--set task.language=zh" in finding
    without_marks = train.replace("，值得", "")  # each text is a single token
    (finding,) = find(tmp_path, "texts", without_marks, seen=seen)
    assert "not segmented" in finding
    assert find(tmp_path, "texts", train, "task.language=zh-chars", seen=seen) == []


def test_labels_of_dev_that_training_does_not_have_are_found(tmp_path):
    dev = "".join(f"text {n}\t{n % 3}\n" for n in range(30))
    (finding,) = find(tmp_path, "texts", make_texts(100), dev=dev)
    assert finding.startswith("30 of 30 labels of dev, such as '0', do not occur in training")


def test_text_of_another_script_than_the_bilm_s_is_found(tmp_path):
    train = "".join(
        f"{letter} {'B-LOC' if n % 5 == 0 else 'O'}\n" for n, letter in enumerate("我在北京住")
    )
    (finding,) = find(tmp_path, "entities", train)
    assert finding.startswith(
        "the biLM has not seen 100% of the characters in the training text, such as 我 在 北, "
    )
    assert find(tmp_path, "entities", train, seen=frozenset("我在北京")) == []
    assert find(tmp_path, "entities", train, seen=None) == []


def test_a_part_of_another_script_than_training_is_found(tmp_path):
    russian = "".join(f"это текст номер {n}\t{'good' if n % 2 else 'bad'}\n" for n in range(40))
    (finding,) = find(tmp_path, "texts", make_texts(40), dev=russian, seen=None)
    assert finding == (
        "100% of the letters in dev, such as т о е, are of a script that training hardly has, so "
        "the files are probably of different languages"
    )
    mixed = make_texts(60) + russian  # some of each is no other script
    assert find(tmp_path, "texts", mixed, dev=russian, seen=None) == []
    assert find(tmp_path, "texts", make_texts(40), dev=mixed, seen=None) == []


def test_one_finding_is_a_sentence_and_several_are_listed():
    remedy = "fix it, or train on it as it is with --accept (in Python: accept=True)"
    assert str(ImplausibleDataError(["a is b"])) == f"the data looks wrong: a is b; {remedy}"
    several = str(ImplausibleDataError(["a is b", "c is d"]))
    assert several == f"the data looks wrong; {remedy}:\n  a is b\n  c is d"


@pytest.mark.slow
def test_a_training_stops_before_anything_is_written_unless_accepted(tmp_path):
    place = Place(tmp_path)
    data = tmp_path / "typo"
    data.mkdir()
    good = "".join("abba\tNOUN\nbad\tVERB\n\n" for _ in range(60))
    (data / "train.txt").write_text(good + "cab\tNUON\n")
    (data / "dev.txt").write_text(good)
    with pytest.raises(ImplausibleDataError, match="'NUON' occurs 1 time"):
        place.fit("run", data_folder=data)
    assert not (tmp_path / "run").exists()
    watcher = Watcher()
    place.fit("run", data_folder=data, accept=True, observer=watcher)
    assert watcher.messages[0].startswith("train: 61 examples, 121 tokens; dev: 60 examples")
    assert watcher.messages[1].startswith("accepted: the label 'NUON' occurs 1 time")


REAL = {
    "conll2003": ("entities", ["eng.train"], ["eng.testa"], []),
    "sst": ("sentiment", ["dev.txt"], ["test.txt"], []),
    "snli": ("entailment", ["dev.tsv"], ["test.tsv"], []),
    "ud_ewt": ("tags", ["en_ewt-ud-dev.conllu"], ["en_ewt-ud-test.conllu"], ["task.column=xpos"]),
    "srl_ewt": ("roles", ["dev.jsonl"], ["test.jsonl"], []),
    "coref_litbank/conll": ("coreference", ["105_persuasion_brat.conll"],
                            ["113_the_secret_garden_brat.conll"], []),
    "squad": ("questions", ["dev-v1.1-rebuilt.json.gz"], ["dev-v1.1-rebuilt.json.gz"], []),
}  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_real_data_is_plausible(name):
    kind, train, dev, changes = REAL[name]
    folder = find_data(name)
    task = make_task(load_settings(kind, changes=changes))
    parts = Parts(
        train=tuple(folder / file for file in train), dev=tuple(folder / file for file in dev)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        data = read_data(task, parts)
    check_data(task, data, seen_characters=find_seen_characters(load_model(SHIPPED), SHIPPED))


def test_chinese_data_is_plausible_for_a_chinese_model_and_not_for_an_english_one():
    folder = find_data("chinese/weibo_ner")
    text = find_data("chinese/peoples_daily_1998/199801.txt").read_text(encoding="utf-8")
    task = make_task(load_settings("entities"))
    parts = Parts(train=(folder / "train.conll",), dev=(folder / "dev.conll",))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        data = read_data(task, parts)
    check_data(task, data, seen_characters=frozenset(text))
    with pytest.raises(
        ImplausibleDataError, match=r"has not seen 85% of the characters .* ， 的 。"
    ):
        check_data(task, data, seen_characters=find_seen_characters(load_model(SHIPPED), SHIPPED))
