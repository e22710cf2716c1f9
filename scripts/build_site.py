"""Build the documentation site in build/site; `make docs` runs this.

    python scripts/build_site.py

The pages are those in docs/, the documents at the top of the repository, and the command
reference, which typer writes from the app. They are collected in build/docs; links to files that
are not on the site are shown as plain text there. Zensical then builds the site and checks links
and anchors. mkdocs.yml has its settings.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "docs"
COMMANDS = "<!-- commands -->"
# Documents that are at the top of the repository, and their pages.
MOVED = {
    "ARCHITECTURE.md": "about/architecture.md",
    "CHANGELOG.md": "about/changelog.md",
    "CONTRIBUTING.md": "about/contributing.md",
}
COMMAND = re.compile(r"^\* `([a-z][a-z-]*)`: .*", flags=re.MULTILINE)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def main() -> None:
    """Collect the pages and build the site."""
    if importlib.util.find_spec("zensical") is None:
        sys.exit("the documentation needs the extra docs: pip install -e '.[docs]'")
    collect_pages(PAGES)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    built = subprocess.run(command, check=False, cwd=ROOT, env={**os.environ, "NO_COLOR": "1"})
    sys.exit(built.returncode)


def collect_pages(target: Path) -> None:
    """Write all pages of the site to a new folder."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "docs", target)
    sources = {target / page: ROOT / name for name, page in MOVED.items()}
    sources |= {path: ROOT / "docs" / path.relative_to(target) for path in target.rglob("*.md")}
    for page, source in sources.items():
        text = source.read_text(encoding="utf-8")
        if COMMANDS in text:
            text = text.replace(COMMANDS, describe_commands())
        page.parent.mkdir(exist_ok=True)
        page.write_text(move_links(text, source=source, page=page, site=target), encoding="utf-8")


def describe_commands() -> str:
    """Return the reference of all commands as Markdown, with headings of the second level."""
    command = [sys.executable, "-m", "typer", "elmore.cli.app", "utils", "docs", "--name", "elmore"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return COMMAND.sub(partial(complete_summary, text), text.removeprefix("# `elmore`\n"))


def complete_summary(text: str, entry: re.Match[str]) -> str:
    """Link an entry in a list of commands, and give all of its summary, which typer shortens."""
    name = entry[1]
    heading = re.search(rf"^##+ `(elmore (?:\w+ )?{name})`\n\n(.*)", text, flags=re.MULTILINE)
    assert heading is not None, f"there is no section about {name}"
    return f"* [`{name}`](#{heading[1].replace(' ', '-')}): {heading[2]}"


def move_links(text: str, *, source: Path, page: Path, site: Path) -> str:
    """Adapt the relative links of a document to its path on the site."""

    def move(link: re.Match[str]) -> str:
        image, label, path, anchor = link.groups(default="")
        if not path or "://" in path:
            return link[0]
        found = (source.parent / path).resolve()
        if found.is_relative_to(ROOT / "docs") and found.is_file():
            moved = site / found.relative_to(ROOT / "docs")
        elif found.parent == ROOT and found.name in MOVED:
            moved = site / MOVED[found.name]
        else:
            return label
        return f"{image}[{label}]({os.path.relpath(moved, page.parent)}{anchor})"

    return LINK.sub(move, text)


if __name__ == "__main__":
    main()
