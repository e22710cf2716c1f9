"""The script that measures the gain of a layer cache, on a tiny model."""

import sys

from benchmarks import layer_cache
from tests.tiny import TRAINED_MODEL

SENTENCES = [["a"] * length for length in (3, 1, 2, 5, 4)]


def test_batches_are_of_like_length_and_have_every_sentence_once():
    batches = layer_cache.draw_batches(SENTENCES, num_sentences=2)
    lengths = [[len(sentence) for sentence in batch] for batch in batches]
    assert sorted(lengths) == [[1, 2], [3, 4], [5]]


def test_from_a_model_to_its_tables(monkeypatch, capsys):
    command = ["--model", TRAINED_MODEL, "--num-tokens", 50, "--batch", 2, "--repeats", 1]
    monkeypatch.setattr(sys, "argv", ["layer_cache", *map(str, command)])
    layer_cache.main()
    printed = capsys.readouterr().out
    rows = [line.strip("| ").split(" | ") for line in printed.splitlines() if line[:1] == "|"]
    (_, _, single, half), speeds = rows[:4], rows[6:]
    assert (half[0], single[0]) == ("f16", "f32")
    assert 0 < int(half[1].replace(",", "")) < int(single[1].replace(",", ""))
    assert [row[0] for row in speeds] == ["live", "f32", "f16"]
    assert speeds[0][2] == "1.0"
