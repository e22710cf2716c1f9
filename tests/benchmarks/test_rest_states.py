"""The script that compares starts, on a tiny model."""

import sys

from benchmarks import rest_states
from tests.corpus.corpora import prepare
from tests.lm.slow_language_model import DOCUMENTS, make_language_model

TEXT = "\n\n".join("\n".join(map(" ".join, document)) for document in DOCUMENTS) + "\n"


def test_from_a_model_and_a_corpus_to_a_table(tmp_path, monkeypatch, capsys):
    make_language_model().save(tmp_path / "model")
    prepare(TEXT, tmp_path / "corpus", heldout=0.0)
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    command = [tmp_path / "model", tmp_path / "corpus", tmp_path / "text.txt"]
    monkeypatch.setattr(sys, "argv", ["rest_states", *map(str, command)])
    rest_states.main()
    heading, _, own, zeros, *others = capsys.readouterr().out.splitlines()
    assert heading == "| start | text.txt |"
    names, values = zip(*(line.split("|")[1:3] for line in (own, zeros, *others)), strict=True)
    assert [name.strip() for name in names[:3]] == ["the model's own", "zeros", "mean by documents"]
    assert len(values) == 6
    assert len(set(values)) == 4  # all of this small corpus is in either sample


def test_sentences_come_from_all_over(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(f"Line {number} ." for number in range(100)), encoding="utf-8")
    taken = rest_states.take_sentences(path, max_tokens=30)
    assert [sentence[1] for sentence in taken] == [str(number) for number in range(0, 100, 10)]
