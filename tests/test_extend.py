"""The pages about extending elmore are true: followed to the letter, they give a working part.

Each page is followed in a copy of the repository. A block with a title is a new file, or a diff of
an existing one; commands and other Python blocks are run.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import Block, find_blocks

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "examples")
PROGRAMS = {"elmore": ("-m", "elmore"), "pytest": ("-m", "pytest")}


@pytest.fixture
def repository(tmp_path):
    """A copy of the repository; large files are links."""
    for name in FOLDERS:
        shutil.copytree(
            ROOT / name,
            tmp_path / name,
            copy_function=copy_or_link,
            ignore=shutil.ignore_patterns("__pycache__", "golden"),
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def copy_or_link(source: str, target: str) -> None:
    if Path(source).suffix in (".py", ".toml"):
        shutil.copy(source, target)
    else:
        Path(target).symlink_to(source)


def apply_diff(path: Path, diff: str) -> None:
    """Replace the one place that has the unchanged and removed lines of a diff."""
    lines = diff.splitlines()
    old = "\n".join(line[1:] for line in lines if not line.startswith("+")) + "\n"
    new = "\n".join(line[1:] for line in lines if not line.startswith("-")) + "\n"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path} has this {text.count(old)} times:\n{old}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def run(folder: Path, *arguments: str) -> str:
    """Run Python in a folder with the elmore that is there, and return what it printed."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{arguments}:\n{done.stdout}{done.stderr}"
    return done.stdout


def follow(folder: Path, block: Block) -> str | None:
    """Do what a block says; return what a program printed."""
    if block.title is not None and block.language == "diff":
        apply_diff(folder / block.title, block.text)
    elif block.title is not None:
        assert not (folder / block.title).exists(), f"{block.title} is not new"
        (folder / block.title).parent.mkdir(exist_ok=True)
        (folder / block.title).write_text(block.text, encoding="utf-8")
    elif block.language == "console":
        for line in block.text.splitlines():
            program, *arguments = shlex.split(line.removeprefix("$ "))
            run(folder, *PROGRAMS[program], *arguments)
    elif block.language == "python":
        return run(folder, "-c", block.text)
    return None


@pytest.mark.parametrize("page", ["token-encoder.md", "task.md", "vector-format.md"])
def test_a_page_followed_to_the_letter_works(repository, page):
    blocks = find_blocks(f"extend/{page}")
    printed = None
    for block in blocks:
        if block.language == "text" and printed is not None:
            assert printed == block.text, f"{page} shows other output"
        printed = follow(repository, block)
    changed = {block.title for block in blocks if block.title and block.title.endswith(".py")}
    run(repository, "-m", "ruff", "check", *changed)
    run(repository, "-m", "ruff", "format", "--check", *changed)
