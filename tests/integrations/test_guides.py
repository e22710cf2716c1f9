"""The pages about other tools run as they are written."""

from pathlib import Path

import pytest

import elmore
from elmore.weights import loading
from tests import pages

pytestmark = pytest.mark.slow

# The modules that each page needs.
NEEDS = {
    "sklearn.md": ["sklearn", "pandas"],
}


def test_every_page_is_run():
    assert {path.name for path in (pages.DOCS / "integrations").glob("*.md")} == set(NEEDS)


@pytest.mark.parametrize("page", NEEDS)
def test_a_page_runs_as_it_is_written(page, tmp_path, monkeypatch, elmore_command):
    for module in NEEDS[page]:
        pytest.importorskip(module, reason=f"{module} is missing: pip install '.[integrations]'")
    monkeypatch.chdir(tmp_path)
    pages.write_sample_files(tmp_path)
    shipped = Path(elmore.__file__).parent / "models" / "english"
    monkeypatch.setattr(loading, "DEFAULT_MODEL", shipped)
    pages.run_page(f"integrations/{page}", elmore_command)


@pytest.mark.parametrize("page", NEEDS)
def test_a_page_begins_with_five_lines_to_copy(page):
    first, *_ = pages.find_blocks(f"integrations/{page}")
    lines = [line for line in first.text.splitlines() if line]
    assert len(lines) <= 5
