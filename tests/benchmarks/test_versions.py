"""Two versions are compared by turns; here, this one with itself."""

import sys

import pytest

from benchmarks import versions


@pytest.mark.slow
def test_every_case_is_measured_in_both(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["versions", str(versions.ROOT), "--rounds", "1"])
    versions.main()
    header, _, *rows = capsys.readouterr().out.splitlines()
    assert header.endswith("| other | this | this / other |")
    assert {row.split(" | ")[0].strip("| ") for row in rows} == set(versions.CASES)
    assert all(0.1 < float(row.split(" | ")[-1].strip("| ")) < 10 for row in rows)
