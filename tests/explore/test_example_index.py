"""The index in the package."""

from pathlib import Path

import pytest

import elmore
from elmore.explore.use_index import EXAMPLE
from elmore.weights.loading import load_model

ROOT = Path(__file__).parents[2]
SHIPPED_MODEL = Path(elmore.__file__).parent / "models" / "english"


@pytest.fixture(scope="module")
def index():
    return elmore.open_index()


def test_it_belongs_to_the_shipped_model(index):
    fingerprint = load_model(SHIPPED_MODEL).fingerprint()
    assert index.model_hash == fingerprint, "run: python recipes/example_index/build.py"
    assert index.layers == (0, 1, 2)


def test_it_is_whole_and_small(index):
    index.check()
    assert sum(path.stat().st_size for path in EXAMPLE.iterdir()) <= 3_000_000


def test_it_has_many_uses_of_ambiguous_words(index):
    assert {"bank", "spring", "light", "play", "bear", "match"} <= set(index.indexed_words)
    for word in index.indexed_words:
        found = index.uses(word)
        assert found.total >= 25
        assert len({use.source for use in found.uses}) >= 5


def test_every_book_is_named_with_its_author_and_year(index):
    listed = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    for source in index.sources:
        assert f"- {source.name.removesuffix('.txt')}\n" in listed
        year = int(source.name[-9:-5])
        assert year < 1929  # in the public domain in the United States


def test_it_has_the_sentences_of_the_recipe(index):
    texts = ROOT / "recipes" / "example_index" / "texts"
    if not texts.is_dir():
        pytest.skip("recipes/ is not here")
    lines = {path.name: path.read_text(encoding="utf-8").splitlines() for path in texts.iterdir()}
    assert set(lines) == {source.name for source in index.sources}
    for use in index.uses("bank").uses:
        line = lines[use.source][use.line - 1]
        assert "".join(use.tokens) == line.replace(" ", "")
