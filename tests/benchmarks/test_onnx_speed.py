"""The script that compares exported models with elmore, on a tiny model."""

import logging
import sys

import pytest

pytest.importorskip("onnx", reason="onnx is missing: pip install '.[onnx]'")

from benchmarks import onnx_speed
from tests.tiny import TRAINED_MODEL


@pytest.mark.slow
def test_from_a_model_to_its_table(monkeypatch, capsys):
    command = ["--model", TRAINED_MODEL, "--tokens", 30, "--repeats", 1]
    monkeypatch.setattr(sys, "argv", ["onnx_speed", *map(str, command)])
    monkeypatch.setattr(logging.root.manager, "disable", 0)  # restored after the script sets it
    onnx_speed.main()
    printed = capsys.readouterr().out
    rows = [line.strip("| ").split(" | ") for line in printed.splitlines() if line[:1] == "|"][2:]
    assert [row[0] for row in rows] == [
        "elmore f32",
        "elmore int8",
        "ONNX f32",
        *onnx_speed.QUANTIZED,
    ]
    sizes = [float(row[1]) for row in rows[2:]]
    assert sizes[1] < sizes[0]
    assert rows[2][-2:] == ["1.00000", "1.00000"]  # single precision gives elmore's vectors
    assert all(0.9 < float(row[-2]) <= 1.0001 for row in rows)
