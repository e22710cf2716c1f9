"""The recipes for other tools read their data and settings."""

import runpy
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.pages import find_blocks

RECIPES = Path(__file__).parents[2] / "recipes"


def load_recipe(name):
    """Return what a program defines."""
    return runpy.run_path(str(RECIPES / name))


def test_trees_become_tokens_and_labels_without_neutral_ones(tmp_path):
    pytest.importorskip("sklearn", reason="needs elmore[sklearn]")
    read_part = load_recipe("sklearn/sst_grid.py")["read_part"]
    path = tmp_path / "train.txt"
    path.write_text("(3 (2 A) (3 (3 fine) (2 film)))\n(2 (2 A) (2 film))\n(0 (1 Bad) (2 .))\n")
    assert read_part(path) == ([["A", "fine", "film"], ["Bad", "."]], [True, False])


def test_the_page_of_spacy_shows_the_configuration_of_the_recipe():
    (shown,) = [block.text for block in find_blocks("integrations/spacy.md")
                if block.language == "ini" and block.title is None]  # fmt: skip
    config = (RECIPES / "spacy" / "with_elmore.cfg").read_text()
    assert shown in config.replace("cache_mb = 2000\n", "")


@pytest.mark.slow
def test_the_configurations_of_spacy_differ_in_elmo_only(tmp_path):
    pytest.importorskip("spacy", reason="needs elmore[spacy]")
    import_module("elmore.integrations.spacy")  # registers the architecture
    fill_config = import_module("spacy.cli.init_config").fill_config
    filled = {}
    for how in ("with", "without"):
        path = RECIPES / "spacy" / f"{how}_elmore.cfg"
        _, filled[how] = fill_config(tmp_path / f"{how}.cfg", path)
    embed = filled["with"]["components"]["tok2vec"]["model"].pop("embed")
    assert embed["@architectures"] == "elmore.Tok2Vec.v1"
    # Beside ELMo's vectors, the same hash embeddings.
    assert embed["embed"] == filled["without"]["components"]["tok2vec"]["model"].pop("embed")
    assert filled["with"] == filled["without"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_sts_benchmark_is_read(tmp_path):
    for module in ("sentence_transformers", "datasets"):
        if find_spec(module) is None:
            pytest.skip("needs elmore[sentence-transformers]")
    read_part = load_recipe("sentence_transformers/sts.py")["read_part"]
    path = tmp_path / "sts-dev.csv"
    path.write_text('main\tMSRvid\t2012\t1\t3.800\tA "man" plays.\tA man sings.\tx\ty\n')
    assert read_part(path).to_list() == [
        {"first": 'A "man" plays.', "second": "A man sings.", "score": 0.76}
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_cut_of_conll_has_no_document_lines(tmp_path):
    if find_spec("flair") is None:
        pytest.skip("flair is missing: run make test-integrations")
    cut_file = load_recipe("flair/ner.py")["cut_file"]
    source = tmp_path / "eng.train"
    source.write_text(
        "-DOCSTART- -X- O O\n\nAnn N N I-PER\nsaw V V O\n\nRome N N I-LOC\n\nShe P P O\n"
    )
    cut_file(source, tmp_path / "cut.txt", num_sentences=2)
    assert (tmp_path / "cut.txt").read_text() == "Ann N N I-PER\nsaw V V O\n\nRome N N I-LOC\n"
