"""The documentation site has a page for everything public, and asks no other host for anything."""

import importlib.util
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

import elmore
from elmore.cli.app import app
from scripts.build_site import MOVED, describe_commands, move_links

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NAVIGATION = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]


def find_pages(entry: Any) -> Iterator[str]:
    """Yield the paths in a navigation, at any depth."""
    if isinstance(entry, str):
        yield entry
    else:
        for part in entry.values() if isinstance(entry, dict) else entry:
            yield from find_pages(part)


def find_commands(command: Any, name: str) -> Iterator[str]:
    """Yield the full names of all commands that can be run."""
    if not hasattr(command, "commands"):
        yield name
    for part, child in getattr(command, "commands", {}).items():
        yield from find_commands(child, f"{name} {part}")


def find_methods(name: str) -> list[str]:
    """Return the public methods and properties that a public class defines."""
    found = getattr(elmore, name)
    members = vars(found) if inspect.isclass(found) else {}
    return [
        member
        for member, value in members.items()
        if not member.startswith("_")
        and isinstance(value, property | classmethod | staticmethod | type(find_methods))
    ]


def test_every_page_is_in_the_navigation_once():
    pages = list(find_pages(NAVIGATION))
    assert sorted(set(pages)) == sorted(pages)
    written = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    # Parts of pages, not pages.
    written -= {"results/english/stored.md"}
    assert set(pages) == written | set(MOVED.values())


def test_every_public_name_has_a_reference():
    text = "\n".join(path.read_text() for path in (DOCS / "reference" / "api").glob("*.md"))
    shown = re.findall(r"^::: elmore\.(\w+)$", text, flags=re.MULTILINE)
    assert sorted(shown) == sorted(elmore.__all__)
    listed = (DOCS / "reference" / "api" / "index.md").read_text()
    assert [name for name in elmore.__all__ if f"[`{name}`]" not in listed] == []


@pytest.mark.slow
def test_every_command_has_a_reference():
    commands = set(find_commands(typer.main.get_command(app), "elmore"))
    assert {"elmore embed", "elmore probe tags"} <= commands
    headings = re.findall(r"^##+ `(elmore .*)`$", describe_commands(), flags=re.MULTILINE)
    assert commands <= set(headings)


@pytest.mark.slow
def test_summaries_of_commands_are_complete():
    entry = re.compile(r"^\* \[`\w+`\]\(#elmore-[\w-]+\): (.*)$", flags=re.MULTILINE)
    summaries = entry.findall(describe_commands())
    assert len(summaries) > 10
    assert not any(summary.endswith("...") for summary in summaries)


def test_links_follow_a_document_to_its_page(tmp_path):
    source, page = ROOT / "CONTRIBUTING.md", tmp_path / "about" / "contributing.md"

    def move(text: str) -> str:
        return move_links(text, source=source, page=page, site=tmp_path)

    assert move("[a](docs/log.md#x)") == "[a](../log.md#x)"
    assert move("[a](ARCHITECTURE.md)") == "[a](architecture.md)"
    assert move("![a](docs/growth.png)") == "![a](../growth.png)"
    assert move("[a](https://a.org/b) [c](#d)") == "[a](https://a.org/b) [c](#d)"
    assert move("[the code](src/elmore/api.py)") == "the code"


@pytest.fixture(scope="module")
def site():
    """The folder of the built site."""
    for name in ("zensical", "mkdocstrings_handlers"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed; it comes with the extra docs")
    command = [sys.executable, "scripts/build_site.py"]
    built = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return ROOT / "build" / "site"


@pytest.mark.slow
def test_the_site_is_built_without_warnings(site):
    for page in find_pages(NAVIGATION):
        assert (site / page).with_suffix(".html").is_file(), page


@pytest.mark.slow
@pytest.mark.parametrize("name", elmore.__all__)
def test_public_names_and_their_methods_are_on_the_site(site, name):
    text = "\n".join(path.read_text() for path in (site / "reference" / "api").glob("*.html"))
    expected = [f"elmore.{name}", *(f"elmore.{name}.{method}" for method in find_methods(name))]
    assert [anchor for anchor in expected if f'id="{anchor}"' not in text] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("ElmoEmbedder", "from-allennlp"),
        ("batch_to_ids", "from-allennlp"),
        ("sents2elmo", "from-elmoformanylangs"),
        ("get_elmo_vectors", "from-simple-elmo"),
        ("weight_layers", "from-bilm-tf"),
        ("hub.Module", "from-tf-hub"),
    ],
)
def test_a_search_for_an_old_name_finds_its_page(site, name, page):
    """Names with underscores are searched by their parts, so they have to be in a heading."""
    entries = json.loads((site / "search.json").read_text())["items"]
    parts = ("title",) if "_" in name else ("title", "text")
    found = {entry["location"] for entry in entries for part in parts if name in entry[part]}
    assert any(location.startswith(f"migrate/{page}.html") for location in found)


@pytest.mark.slow
def test_pages_load_nothing_from_other_hosts(site):
    for path in site.rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]*)\"|<link\b[^>]*\bhref=\"([^\"]*)\"",
            path.read_text(),
        )
        foreign = [one for pair in loaded for one in pair if re.match(r"(https?:)?//", one)]
        assert foreign == [], path
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", path.read_text()), path
