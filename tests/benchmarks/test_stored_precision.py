"""The script that measures the cost of half precision, on a tiny model."""

import sys

import numpy as np
import pytest
import torch

from benchmarks import stored_precision
from elmore.embed.embedder import Embedder
from tests import tiny
from tests.lm.slow_language_model import DOCUMENTS, SENTENCES, make_language_model

TEXT = "\n\n".join("\n".join(map(" ".join, document)) for document in DOCUMENTS) + "\n"


def test_an_error_is_that_of_the_worst_token_and_of_the_mean(monkeypatch):
    monkeypatch.setattr(stored_precision, "CHUNK", 3)
    exact, rounded = tiny.model(seed=0), tiny.model(seed=0)
    with torch.no_grad():
        rounded.bilm.forward_lm[1].bias += 0.1  # which changes the top layer alone
    errors = stored_precision.compare_layers(rounded, exact, SENTENCES)
    wanted: list[tuple[float, float]] = []
    for sentence in SENTENCES:
        (ours,), (theirs,) = (
            Embedder(model).embed([sentence], layers="all") for model in (rounded, exact)
        )
        for a, b in zip(ours[2].astype(float), theirs[2].astype(float), strict=True):
            difference = float(sum((a - b) ** 2) ** 0.5 / sum(b**2) ** 0.5)
            wanted.append((difference, float(np.dot(a, b) / (a @ a * (b @ b)) ** 0.5)))
    differences, cosines = zip(*wanted, strict=True)
    assert [error.largest for error in errors[:2]] == [0.0, 0.0]
    assert errors[2].largest == pytest.approx(max(differences), rel=1e-5)
    assert errors[2].mean == pytest.approx(sum(differences) / len(differences), rel=1e-5)
    assert errors[2].cosine == pytest.approx(min(cosines), rel=1e-5)


@pytest.mark.slow
def test_from_a_model_to_its_tables(tmp_path, monkeypatch, capsys):
    make_language_model().save(tmp_path / "model")
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    command = [tmp_path / "model", tmp_path / "text.txt", "--max-tokens", 20]
    monkeypatch.setattr(sys, "argv", ["stored_precision", *map(str, command)])
    stored_precision.main()
    printed = capsys.readouterr().out
    assert "The original weights are f32" in printed
    lines = [line.strip("| ").split(" | ") for line in printed.splitlines() if "|" in line]
    assert [line[:2] for line in lines[2:8]] == [
        [store, str(layer)] for store in ("f16", "bf16") for layer in range(3)
    ]
    largest = [float(line[2].rstrip("%")) for line in lines[2:8]]
    assert 0 < min(largest[:3]) <= max(largest[:3]) < 2
    assert max(largest[:3]) < max(largest[3:]) < 20
    assert [line[0] for line in lines[10:]] == ["f32", "f16", "bf16", "f16, LM head int8"]
    assert lines[10][4::2] == ["+0.0000%", "+0.0000%"]
    assert all(change != "+0.0000%" for line in lines[11:] for change in line[4::2])
