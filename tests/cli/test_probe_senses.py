import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from elmore.cli.probe_senses import probe_senses_command
from elmore.config import StatePolicy
from elmore.errors import DataError
from elmore.probes import nearest_sense
from tests import tiny

ROWS = ["most frequent sense", "layer 0", "layer 1", "layer 2", "average"]


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    """The command by itself with a small model, to be called with its other arguments."""
    folder = tmp_path_factory.mktemp("models") / "model"
    tiny.model(scale=0.4).save_pretrained(folder)
    app = typer.Typer()
    app.command()(probe_senses_command)

    def run(*arguments):
        return CliRunner().invoke(app, [*map(str, arguments), "--model", str(folder)])

    return run


def sense(i, key, *, lemma="bank"):
    return {"i": i, "lemma": lemma, "pos": "NOUN", "key": key}


def write(path, *entries):
    path.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    return path


@pytest.fixture
def files(tmp_path):
    money = {"tokens": ["Money", "in", "the", "bank"], "senses": [sense(3, "bank%1:14:00::")]}
    river = {"tokens": ["A", "river", "bank"], "senses": [sense(2, "bank%1:17:01::")]}
    new = {"tokens": ["A", "match"], "senses": [sense(1, "match%1:06:00::", lemma="match")]}
    (tmp_path / "index.sense").write_text("match%1:06:00:: 1 1 0\nbank%1:17:01:: 2 1 0\n")
    np.savez(tmp_path / "glove.npz", words=np.array(["money", "river"]), vectors=np.eye(2, 2) + 0.1)
    write(tmp_path / "train.jsonl", money, money, river)
    write(tmp_path / "one.jsonl", money, river)
    write(tmp_path / "two.jsonl", river, new)
    return tmp_path


def test_every_view_and_baseline_is_scored_on_every_test(files, probe):
    result = probe(
        *(files / "train.jsonl", files / "one.jsonl", files / "two.jsonl", "--json"),
        *("--wordnet", files / "index.sense", "--vectors", files / "glove.npz"),
    )
    found = json.loads(result.stdout)
    assert found["num_targets"] == {"one": 2, "two": 2}
    assert sorted(found["f1"]) == sorted([*ROWS, "WordNet first sense", "static vectors around"])
    wanted = {
        "most frequent sense": (50, 50, 50),  # bank as money, match by WordNet
        "WordNet first sense": (50, 100, 75),
        "static vectors around": (100, 100, 100),
        "layer 2": (100, 100, 100),  # the very sentences of the training text
        "layer 0": (50, 50, 50),  # without context the most frequent sense
    }
    for row, (one, two, together) in wanted.items():
        scores = found["f1"][row]
        assert (scores["tests"], scores["all"]) == ({"one": one, "two": two}, together), row


def test_without_wordnet_new_lemmas_stay_without_an_answer(files, probe):
    found = json.loads(probe(files / "train.jsonl", files / "two.jsonl", "--json").stdout)
    assert sorted(found["f1"]) == sorted(ROWS)
    assert found["f1"]["layer 2"]["all"] == pytest.approx(100 * 2 * 1 / (1 + 2))


def test_a_large_prior_leaves_only_the_most_frequent_sense(files, probe):
    texts = (files / "train.jsonl", files / "one.jsonl", "--vectors", files / "glove.npz")
    found = json.loads(probe(*texts, "--json", "--prior", "100").stdout)["f1"]
    assert {row: scores["all"] for row, scores in found.items()} == dict.fromkeys(found, 50)
    assert probe(*texts, "--prior", "-1").exit_code == 2


def test_the_table_has_a_row_a_view_and_a_column_a_test(files, probe):
    out = probe(files / "train.jsonl", files / "one.jsonl", files / "two.jsonl").stdout
    assert all(row in out for row in ROWS)
    assert all(column in out for column in ["one", "two", "all", "(4)", "100.0"])
    assert "all" not in probe(files / "train.jsonl", files / "one.jsonl").stdout


def test_tests_of_the_same_name_are_distinguished_by_their_paths(files, probe):
    (files / "more").mkdir()
    other = write(
        files / "more" / "one.jsonl", json.loads((files / "one.jsonl").read_text().split("\n")[0])
    )
    found = json.loads(probe(files / "train.jsonl", files / "one.jsonl", other, "--json").stdout)
    assert found["num_targets"] == {str(files / "one.jsonl"): 2, str(other): 1}


def test_texts_without_senses_are_refused(files, probe):
    empty = write(files / "empty.jsonl", {"tokens": ["a"], "senses": []})
    error = probe(empty, files / "one.jsonl").exception
    assert isinstance(error, DataError)
    assert "empty.jsonl has no words with senses" in str(error)
    error = probe(files / "train.jsonl", empty).exception
    assert isinstance(error, DataError)
    assert "the test set empty has no words with senses" in str(error)


def test_files_are_read_in_order_if_the_state_is_carried(files, probe, monkeypatch):
    states = []
    embed = nearest_sense.embed_sentences

    def watch(embedder, sentences):
        states.append(embedder.state)
        return embed(embedder, sentences)

    monkeypatch.setattr(nearest_sense, "embed_sentences", watch)
    paths = (files / "train.jsonl", files / "one.jsonl")
    assert probe(*paths, "--state", "document").exit_code == 0
    assert set(states) == {StatePolicy.DOCUMENT}
    states.clear()
    assert probe(*paths).exit_code == 0
    assert set(states) == {StatePolicy.RESET}
