"""The model that comes with elmore is whole, small enough, and what its page says it is."""

import importlib.resources
import re
from pathlib import Path

import numpy as np
import pytest

import elmore
from elmore.explore.neighbors import collect_contexts
from elmore.lm.language_model import load_language_model
from elmore.lm.scoring import fill_gap
from elmore.text.files import TextForm, read_sentences
from elmore.weights import loading
from recipes.english.write_page import fill, make_tables

ROOT = Path(__file__).parents[1]
FOLDER = Path(str(importlib.resources.files("elmore"))) / "models" / "english"
DOCS = ROOT / "docs" / "results"
README = (ROOT / "README.md").read_text()
MAX_BYTES = 40_000_000


@pytest.fixture(autouse=True)
def _shipped_default(_small_default, monkeypatch):
    monkeypatch.setattr(loading, "DEFAULT_MODEL", FOLDER)


def test_it_fits_into_the_package():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= MAX_BYTES


@pytest.mark.slow
def test_without_a_name_it_is_used(elmore_command):
    assert elmore.load().model.fingerprint() == elmore.load(FOLDER).model.fingerprint()
    facts = elmore_command("info", "--json").json
    assert facts["name"] == "elmore-english"
    assert facts["stored"] == "f16"
    assert facts["has_softmax"]
    assert facts["softmax_fits"]
    assert elmore_command("score", "--sentence", "The bank of the river .").status == 0


def test_the_card_names_sources_license_and_limits():
    card = (FOLDER / "README.md").read_text()
    for word in ("Wikipedia", "public domain", "CC BY-SA", "perplexity", "1929", "2006", "recipes"):
        assert word in card, word


def test_nothing_in_it_shows_where_it_was_made():
    for path in FOLDER.glob("*.json"):
        assert not re.search(r'"/\w', path.read_text()), path.name


SENSES = {
    "bank": "river money money river",
    "play": "verb noun verb noun",
    "spring": "water season water season",
    "light": "verb adjective noun verb adjective noun",
}


@pytest.mark.parametrize(
    ("layers", "num_right", "sentence"),
    [
        ("average", 15, "For 15 of the 18 uses, the nearest neighbor has the same meaning"),
        ("top", 15, "With the top layer it is 15 too."),
    ],
)
def test_uses_of_one_meaning_are_closest_as_often_as_the_readme_says(layers, num_right, sentence):
    embedder = elmore.load()
    sentences = list(read_sentences(ROOT / "examples" / "sentences.txt", form=TextForm.RAW))
    found: list[bool] = []
    for word, names in SENSES.items():
        senses = names.split()
        _, vectors = collect_contexts(embedder, word, sentences, layers=layers)
        cosines = vectors @ vectors.T - 2 * np.eye(len(vectors))
        closest = [senses[index] for index in cosines.argmax(axis=1)]
        found += map(str.__eq__, closest, senses)
    assert (sum(found), len(found)) == (num_right, 18)
    assert sentence in " ".join(README.split())


@pytest.mark.slow
def test_it_fills_gaps_with_words_that_fit():
    model = load_language_model(None)
    words = [
        filling.word
        for filling in fill_gap(
            model, ["He", "opened", "the", "___", "and", "went", "in", "."], top=10
        )
    ]
    assert "door" in words


@pytest.mark.parametrize("page", [DOCS / "english.md", FOLDER / "README.md"], ids=str)
def test_page_and_card_show_what_was_measured(page):
    text = page.read_text()
    assert fill(text, make_tables()) == text
    assert text.count("<!-- end -->") >= 3
