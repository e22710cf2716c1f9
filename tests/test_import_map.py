"""Imports point one way, along the way of the data; ARCHITECTURE.md shows the same map."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import elmore

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "elmore"

# Each package or module may import from itself and from these; nothing may import what comes later.
MAP = {
    "errors": set(),
    "arguments": {"errors"},
    "extras": {"arguments", "errors"},
    "wording": set(),
    "settings": {"errors"},
    "config": {"errors", "settings"},
    "files": {"errors"},
    "text": {"errors", "wording"},
    "kernels": {"config", "errors"},
    "model": {"config", "errors", "kernels", "text"},
    "build": {"config", "model", "text"},
    "weights": {
        "arguments",
        "build",
        "config",
        "errors",
        "files",
        "kernels",
        "model",
        "text",
        "wording",
    },
    "read": {"config", "errors", "model", "settings", "text"},
    "jobs": {"errors", "files"},
    "corpus": {"arguments", "errors", "files", "settings", "text", "wording"},
    "lm": {
        "config",
        "corpus",
        "errors",
        "files",
        "jobs",
        "kernels",
        "model",
        "read",
        "settings",
        "text",
        "weights",
        "wording",
    },
    "embed": {
        "arguments",
        "config",
        "errors",
        "extras",
        "files",
        "jobs",
        "kernels",
        "lm",
        "model",
        "read",
        "settings",
        "text",
        "weights",
    },
    "tasks": {
        "build",
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
    "comparison": {"errors", "files", "jobs", "settings", "tasks", "weights", "wording"},
    "explore": {"arguments", "config", "embed", "errors", "files", "lm", "settings", "text"},
    "api": {
        "arguments",
        "comparison",
        "config",
        "corpus",
        "embed",
        "errors",
        "explore",
        "lm",
        "settings",
        "tasks",
        "text",
    },
    "cli": {
        "comparison",
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


# What stands on the public API alone, and so proves it.
LEAVES = ("compat", "integrations", "serve", "cluster", "export")


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    """Return the packages that a module imports from, inside functions too."""
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


@pytest.mark.slow
def test_every_import_is_on_the_map():
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in PACKAGE.rglob("*.py")
        if (package := package_of(path)) in MAP
        for name in imports_of(path) - MAP[package] - {package}
        if not (package == "cli" and name in LEAVES)  # which have commands too
    ]
    assert wrong == []


def test_the_map_knows_every_package():
    packages = {package_of(path) for path in PACKAGE.rglob("*.py")}
    assert packages - set(MAP) - set(LEAVES) == {"__init__", "__main__"}


@pytest.mark.slow
def test_the_map_has_no_unused_arrow_and_no_circle():
    used = {package: set() for package in MAP}
    for path in PACKAGE.rglob("*.py"):
        if package_of(path) in MAP:
            used[package_of(path)] |= imports_of(path) - {package_of(path)}
    assert {
        package: arrows - used[package] for package, arrows in MAP.items() if arrows - used[package]
    } == {}
    order = list(MAP)
    assert all(order.index(name) < order.index(package) for package in MAP for name in MAP[package])


def test_the_document_shows_this_map():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    shown = dict(re.findall(r"^\| `(\w+)/?` \| ([^|]*) \|", text, flags=re.MULTILINE))
    assert {package: set(re.findall(r"\w+", arrows)) for package, arrows in shown.items()} == MAP


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
        if package_of(path) != "compat"  # which has the names of other libraries
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, number in names.items() if number > 1] == []


def test_the_model_knows_no_files_and_no_prints():
    for path in (PACKAGE / "model").glob("*.py"):
        source = path.read_text()
        assert "print(" not in source
        assert not re.search(r"import (json|pathlib|os)\b|open\(", source), path


def find_private_imports(source: str) -> list[str]:
    """Return what a leaf imports from elmore beyond what `elmore` exports, inside functions too."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            package = node.module.split(".")
            if package[0] != "elmore" or (len(package) > 1 and package[1] in LEAVES):
                continue
            names = [alias.name for alias in node.names]
            found += (
                [f"elmore.{name}" for name in names if name not in [*elmore.__all__, *LEAVES]]
                if len(package) == 1
                else [node.module]
            )
        elif isinstance(node, ast.Import):
            found += [
                alias.name
                for alias in node.names
                if alias.name.startswith("elmore.") and alias.name.split(".")[1] not in LEAVES
            ]
    return found


def test_leaves_import_the_public_api_only():
    assert len(list((PACKAGE / "compat").rglob("*.py"))) > 10  # this test sees them
    wrong = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for leaf in LEAVES
        for path in (PACKAGE / leaf).rglob("*.py")
        for name in find_private_imports(path.read_text(encoding="utf-8"))
    ]
    assert wrong == []


def test_a_private_import_of_a_leaf_is_found():
    for private in (
        "from elmore.embed.embedder import Embedder",
        "def f():\n    import elmore.weights.loading",
        "from elmore import config",
    ):
        assert find_private_imports(private) != []
    for public in (
        "import elmore",
        "from elmore import load, ElmoreError",
        "from elmore.serve.app import make_app",
        "from elmore import compat",
    ):
        assert find_private_imports(public) == []


def test_every_exported_name_is_there():
    for name in elmore.__all__:
        assert getattr(elmore, name) is not None
    assert set(dir(elmore)) == {*elmore.__all__, "__version__"}
