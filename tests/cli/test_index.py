import json

import pytest

from tests.explore import indexes


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    indexes.write_texts(tmp_path)
    return tmp_path


def test_files_are_indexed_added_and_skipped(folder, elmore_command):
    result = elmore_command("index", "book.txt", "--out", "index")
    assert (result.status, result.out) == (0, "")
    assert "index: added 24 tokens; 24 tokens of 17 words in 4 sentences" in result.err
    report = elmore_command("index", "*.conllu", "book.txt", "--out", "index", "--json").json
    assert (report["num_added_tokens"], report["num_tokens"]) == (5, 29)
    result = elmore_command("index", "book.txt", "--out", "index")
    assert result.err.endswith("index: 29 tokens of 20 words in 6 sentences, 0.0 MB\n")


def test_neighbors_of_an_index_are_those_of_its_text(folder, elmore_command):
    elmore_command("index", "book.txt", "--out", "index")
    for options in ([], ["--in", "A bank."], ["--layers", "1", "--top", "2"]):
        wanted = elmore_command("neighbors", "bank", "book.txt", "--json", *options).json
        found = elmore_command("neighbors", "bank", "index", "--json", *options).json
        assert [n["similarity"] for n in found] == pytest.approx(
            [n["similarity"] for n in wanted], abs=2e-3
        )
        places = [(n["context"]["sentence"], n["context"]["position"]) for n in found]
        assert (
            places[:2] == [(n["context"]["sentence"], n["context"]["position"]) for n in wanted][:2]
        )


def test_a_word_that_is_not_in_the_index(folder, elmore_command):
    elmore_command("index", "book.txt", "--out", "index")
    result = elmore_command("neighbors", "moon", "index")
    assert (result.status, result.out) == (0, "")
    assert result.err == "'moon' does not occur in the text\n"
    assert "occurs only once" in elmore_command("neighbors", "river", "index").err


def test_a_mistake_is_one_sentence(folder, elmore_command):
    result = elmore_command("index", "missing.txt", "--out", "index")
    assert result.status == 2
    assert result.err == (
        "elmore: cannot index missing.txt: there is no such file; check its path\n"
    )
    assert not (folder / "index").exists()
    (folder / "index").mkdir()
    result = elmore_command("neighbors", "bank", "index")
    assert result.status == 2
    assert result.err == "elmore: index is not an index; build one with elmore index\n"
    elmore_command("index", "book.txt", "--out", "index")
    path = folder / "index" / "index.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "num_tokens": 3}))
    result = elmore_command("neighbors", "bank", "index")
    assert result.status == 2
    assert "index.json is damaged (its checksum differs); copy the index again" in result.err


def test_a_layer_that_the_model_does_not_have(folder, elmore_command):
    result = elmore_command("index", "book.txt", "--out", "index", "--layers", "5")
    assert result.status == 2
    assert result.err.endswith(
        "--layers is '5'; give all, top, a layer number from 0 to 2, or several: 0,2\n"
    )
    assert not (folder / "index").exists()


def test_standard_input_cannot_be_indexed(folder, elmore_command):
    result = elmore_command("index", "-", "--out", "index")
    assert result.status == 2
    assert "cannot index -: there is no such file" in result.err
