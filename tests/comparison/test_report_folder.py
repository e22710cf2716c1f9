import sys

import pytest

from elmore.comparison.report_folder import write_report
from elmore.comparison.result_files import read_comparison
from tests.comparison.made_up import make_comparison, make_runs

COMPARISON = make_comparison(
    [*make_runs("without", [80.0, 82.0]), *make_runs("input", [84.0, 86.5])], words="\udc80.txt"
)


@pytest.mark.slow
def test_both_files_are_written_and_never_vary(tmp_path):
    pytest.importorskip("matplotlib", reason="needs elmore[plot]")
    pages = [write_report(COMPARISON, tmp_path / name, command="elmore compare") for name in "ab"]
    assert pages[0] == tmp_path / "a" / "report.html"
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert {path.name for path in pages[0].parent.iterdir()} == {"report.html", "report.json"}
    assert read_comparison(tmp_path / "a" / "report.json") == COMPARISON
    assert pages[0].read_text().count('<img src="data:image/svg+xml;base64,') == 3


def test_without_matplotlib_the_page_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = write_report(COMPARISON, tmp_path, command="elmore compare").read_text()
    assert "<img" not in page
    assert "Plots are missing: a plot needs an optional library" in page
    assert "pip install &#x27;elmore[plot]&#x27;" in page
    assert "points higher than without ELMo" in page
