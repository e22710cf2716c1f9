"""The recipes for scikit-learn and spaCy read their data and settings."""

import runpy
from importlib import import_module
from pathlib import Path

import pytest

RECIPES = Path(__file__).parents[2] / "recipes"


def test_trees_become_tokens_and_labels_without_neutral_ones(tmp_path):
    pytest.importorskip("sklearn", reason="needs elmore[sklearn]")
    read_part = runpy.run_path(str(RECIPES / "sklearn" / "sst_grid.py"))["read_part"]
    path = tmp_path / "train.txt"
    path.write_text("(3 (2 A) (3 (3 fine) (2 film)))\n(2 (2 A) (2 film))\n(0 (1 Bad) (2 .))\n")
    assert read_part(path) == ([["A", "fine", "film"], ["Bad", "."]], [True, False])


@pytest.mark.slow
def test_the_configurations_of_spacy_differ_in_their_vectors_only(tmp_path):
    pytest.importorskip("spacy", reason="needs elmore[spacy]")
    import_module("elmore.integrations.spacy")  # registers the architecture
    fill_config = import_module("spacy.cli.init_config").fill_config
    filled = {}
    for how in ("with", "without"):
        path = RECIPES / "spacy" / f"{how}_elmore.cfg"
        _, filled[how] = fill_config(tmp_path / f"{how}.cfg", path)
        tok2vec = filled[how]["components"].pop("tok2vec")
        filled[how]["components"]["ner"]["model"]["tok2vec"].pop("width")
        assert ("elmore" in tok2vec["model"]["@architectures"]) == (how == "with")
    assert filled["with"] == filled["without"]
