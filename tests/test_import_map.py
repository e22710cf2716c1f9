"""Imports point one way, along the way of the data; ARCHITECTURE.md shows the same map."""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "elmore"

# Each place may import from itself and from these; nothing may import what comes later.
MAP = {
    "errors": set(),
    "wording": set(),
    "settings": {"errors"},
    "config": {"errors", "settings"},
    "files": {"errors"},
    "text": {"errors"},
    "kernels": {"config", "errors"},
    "model": {"config", "errors", "kernels", "text"},
    "build": {"config", "model", "text"},
    "weights": {"build", "config", "errors", "files", "model", "settings", "text"},
    "read": {"config", "errors", "model", "text"},
    "jobs": {"errors", "files"},
    "embed": {"config", "errors", "files", "jobs", "model", "read", "settings", "text", "weights"},
    "corpus": {"errors", "files", "text", "wording"},
    "lm": {
        "config",
        "corpus",
        "errors",
        "files",
        "jobs",
        "model",
        "read",
        "settings",
        "text",
        "weights",
        "wording",
    },
    "tasks": {
        "config",
        "corpus",
        "embed",
        "errors",
        "files",
        "jobs",
        "lm",
        "model",
        "settings",
        "text",
        "weights",
        "wording",
    },
    "probes": {"config", "embed", "errors", "model", "tasks", "text"},
    "compare": {"errors", "files", "jobs", "settings", "tasks", "wording"},
    "explore": {"config", "embed", "errors", "lm"},
    "cli": {
        "compare",
        "config",
        "corpus",
        "embed",
        "errors",
        "explore",
        "files",
        "jobs",
        "kernels",
        "lm",
        "probes",
        "read",
        "settings",
        "tasks",
        "text",
        "weights",
        "wording",
    },
}


def place_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    """Return the places that a module imports from, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {
            name.split(".")[1] for name in names if name.startswith("elmore.") and name.count(".")
        }
    return {
        name for name in found if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()
    }


def test_every_import_is_on_the_map():
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in PACKAGE.rglob("*.py")
        if (place := place_of(path)) in MAP
        for name in imports_of(path) - MAP[place] - {place}
    ]
    assert wrong == []


def test_the_map_knows_every_place():
    places = {place_of(path) for path in PACKAGE.rglob("*.py")}
    assert places - set(MAP) == {"__init__", "__main__"}


def test_the_map_has_no_unused_arrow_and_no_circle():
    used = {place: set() for place in MAP}
    for path in PACKAGE.rglob("*.py"):
        if place_of(path) in MAP:
            used[place_of(path)] |= imports_of(path) - {place_of(path)}
    assert {
        place: arrows - used[place] for place, arrows in MAP.items() if arrows - used[place]
    } == {}
    order = list(MAP)
    assert all(order.index(name) < order.index(place) for place in MAP for name in MAP[place])


def test_the_document_shows_this_map():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    shown = dict(re.findall(r"^\| `(\w+)/?` \| ([^|]*) \|", text, flags=re.MULTILINE))
    assert {place: set(re.findall(r"\w+", arrows)) for place, arrows in shown.items()} == MAP


def test_verbs_share_code_through_other_modules_only():
    """A file in cli/ that defines a command is imported by cli/app.py alone."""
    imported = {path: cli_imports_of(path) for path in (PACKAGE / "cli").glob("*.py")}
    verbs = imported.pop(PACKAGE / "cli" / "app.py") - {"display"}
    assert {"embed", "fit", "prepare"} <= verbs
    wrong = {path.name: names & verbs for path, names in imported.items() if names & verbs}
    assert wrong == {}


def cli_imports_of(path: Path) -> set[str]:
    names = re.findall(r"from elmore\.cli\.(\w+) import", path.read_text())
    names += [
        alias.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "elmore.cli"
        for alias in node.names
    ]
    return set(names)


def test_no_two_public_classes_share_a_name():
    names = Counter(
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, number in names.items() if number > 1] == []


def test_the_model_knows_no_files_and_no_prints():
    for path in (PACKAGE / "model").glob("*.py"):
        source = path.read_text()
        assert "print(" not in source
        assert not re.search(r"import (json|pathlib|os)\b|open\(", source), path
