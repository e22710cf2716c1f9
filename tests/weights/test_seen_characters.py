"""What a model can have learned from is what its lists have; without lists, nobody knows."""

import importlib.resources
from pathlib import Path

from elmore.weights.loading import load_model
from elmore.weights.seen_characters import find_seen_characters
from tests import tiny

SHIPPED = Path(str(importlib.resources.files("elmore"))) / "models" / "english"


def test_the_shipped_model_has_seen_english_and_no_chinese():
    seen = find_seen_characters(load_model(SHIPPED), SHIPPED)
    assert set("Thequickbrownfox,1999!") <= seen
    assert not seen & set("我在北京住")


def test_a_model_of_bytes_without_a_list_of_words_says_nothing(tmp_path):
    tiny.model().save_pretrained(tmp_path)
    assert find_seen_characters(load_model(tmp_path), tmp_path) is None


def test_a_source_that_is_gone_is_ignored(tmp_path):
    assert find_seen_characters(tiny.model(), tmp_path / "nowhere") is None
