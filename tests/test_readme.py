"""The commands in the README run and print what it shows."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests import pages

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
CHINESE = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")


def test_the_demo_prints_what_the_readme_shows():
    result = subprocess.run(
        [sys.executable, "examples/demo.py"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    printed = "\n".join(line.rstrip() for line in result.stdout.splitlines())
    shown = re.search(r"shows:\n\n```text\n(.*?)\n```", README, flags=re.DOTALL)
    assert shown is not None
    assert shown[1] == printed


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with what the README's commands ask for."""
    pages.write_sample_files(tmp_path)
    pages.shorten_epochs(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("readme", [README, CHINESE], ids=["english", "chinese"])
def test_the_commands_of_the_readme_run(folder, elmore_command, readme):
    commands = re.findall(r"^\$ elmore (.*)$", readme, flags=re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        result = elmore_command(*shlex.split(command, comments=True))
        assert result.status == 0, result.err


def test_the_readmes_lead_to_each_other_on_the_first_screen():
    assert "[简体中文](README.zh-CN.md)" in README[:200]
    assert "[English](README.md)" in CHINESE[:200]
    assert "(docs/zh/quickstart.md)" in CHINESE[:200]


def test_the_picture_of_a_report_is_small():
    assert "](docs/report.png)" in README
    assert (ROOT / "docs" / "report.png").stat().st_size < 150_000


def test_every_link_leads_somewhere():
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text()):
            assert "://" in target or (path.parent / target).exists(), f"{path.name}: {target}"
