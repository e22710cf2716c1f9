"""`elmore probe tags` prints what the Python functions measure, and a sentence for mistakes."""

from dataclasses import asdict

import numpy as np
import pytest

from elmore.embed.embedder import load
from elmore.probes.layer_views import TaggedParts, score_views
from elmore.probes.linear_probe import ProbeSettings
from elmore.probes.tagged_data import read_tagged
from elmore.text.word_vectors import read_word_vectors
from tests import tiny

SENTENCES = {
    "train": ["the/D cat/N sat/V", "a/D dog/N ran/V ./P", "the/D dog/N sat/V ./P"],
    "dev": ["a/D cat/N ran/V ./P"],
    "test": ["the/D cat/N ran/V ./P", "a/D bird/N sat/V"],
}


@pytest.fixture
def model(tmp_path):
    tiny.model().save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def probe(model, elmore_command):
    """The command with a small model."""
    return lambda *arguments: elmore_command("probe", "tags", "--model", model, *arguments)


@pytest.fixture
def files(tmp_path):
    """The three parts in CoNLL-U."""
    paths = []
    for part, sentences in SENTENCES.items():
        paths.append(tmp_path / f"{part}.conllu")
        blocks = []
        for sentence in sentences:
            pairs = [entry.split("/") for entry in sentence.split()]
            lines = [
                f"{number}\t{token}\t_\t{tag}\t{tag.lower()}\t_\t0\tdep\t_\t_\n"
                for number, (token, tag) in enumerate(pairs, start=1)
            ]
            blocks.append("".join(lines))
        paths[-1].write_text("\n".join(blocks))
    return paths


def test_scores_are_those_of_the_python_functions(files, probe, model, tmp_path):
    vectors = tmp_path / "glove.npz"
    np.savez(vectors, words=["the", "cat"], vectors=np.eye(2))
    result = probe(*files, "--column", "xpos", "--vectors", vectors, "--seed", 3, "--json")
    assert result.status == 0
    parts = {
        part: read_tagged(path, column="xpos") for part, path in zip(SENTENCES, files, strict=True)
    }
    scores = score_views(
        TaggedParts(**parts),
        load(model),
        words=read_word_vectors(vectors),
        settings=ProbeSettings(seed=3),
    )
    assert result.json == {
        "column": "xpos",
        "seed": 3,
        "scores": [asdict(score) for score in scores],
    }
    assert [score["name"] for score in result.json["scores"]] == [
        "most frequent tag", "word vectors", "layer 0", "layer 1", "layer 2", "average",
        "learned mix",
    ]  # fmt: skip


def test_the_table_has_a_row_a_view(files, probe):
    result = probe(*files)
    assert result.status == 0
    baseline = next(line for line in result.out.splitlines() if "most frequent tag" in line)
    # 'bird', the one unseen word, is taken for what most words are, a D.
    assert [cell.strip() for cell in baseline.split("│")[2:5]] == ["100.00%", "85.71%", "0.00%"]
    for name in ("layer 0", "layer 1", "layer 2", "average", "learned mix"):
        assert name in result.out
    assert "word vectors" not in result.out
    assert "7 test tokens, 1 of them unseen words" in result.out
    assert "of layer 0 to 2" in result.out


def test_columns_by_number_and_no_unseen_word(probe, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the D\ncat N\n\na D\ndog N\n")
    result = probe(path, path, path, "--column", 2)
    assert result.status == 0
    baseline = next(line for line in result.out.splitlines() if "most frequent tag" in line)
    assert [cell.strip() for cell in baseline.split("│")[2:5]] == ["100.00%", "100.00%", "-"]


def test_mistakes_are_one_sentence(files, probe, tmp_path):
    empty = tmp_path / "empty.conllu"
    empty.write_text("")
    train, dev, test = files
    for arguments, message in (
        ((train, dev, tmp_path / "none"), "there is no file"),
        ((train, empty, test), "empty.conllu has no tagged sentence"),
        ((train, dev, test, "--column", "pos"), "column is 'pos'"),
        ((train, dev, test, "--column", "4"), "is CoNLL-U"),
        ((train, dev, test, "--vectors", tmp_path / "none.txt"), "there is no file"),
        ((train, dev, test, "--model", tmp_path / "none"), "there is no model"),
        ((train, dev, test, "--seed", "-1"), "--seed"),
        ((train, dev), "Missing argument"),
    ):
        result = probe(*arguments)
        assert result.status == 2, arguments
        assert message in result.err
        assert "Traceback" not in result.err
        assert result.out == ""
