"""What is passed on is whole, says under which licences, and says whether it has kernels."""

import importlib.util
import json
import platform
import sys
import tomllib

import pytest

from tests import packages
from tests.kernels import variants
from tests.packages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MODELS = ROOT / "src" / "elmore" / "models"

pytestmark = [
    variants.not_sanitized,
    pytest.mark.skipif(
        importlib.util.find_spec("setuptools") is None,
        reason="setuptools, which setup.py imports, is not installed",
    ),
]
builds_kernels = pytest.mark.skipif(
    platform.machine().lower() not in {"x86_64", "amd64"} or sys.platform == "win32",
    reason="nothing is compiled on this machine",
)


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "project").mkdir()
    return packages.copy_project(tmp_path / "project")


@pytest.fixture(scope="module")
def plain_wheel(tmp_path_factory):
    """A wheel made where nothing can be compiled."""
    tree = packages.copy_project(tmp_path_factory.mktemp("project"))
    return packages.build_wheel(tree, tree / "dist", CC="/bin/false", CXX="/bin/false")


@pytest.mark.slow
def test_the_source_package_has_every_file_of_the_project(tree, tmp_path):
    wanted = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}
    names = packages.names_in_sdist(packages.build_sdist(tree, tmp_path / "dist"))
    assert {"configs/tiny.toml", "tests/test_packages.py", "NOTICE"} <= wanted
    assert wanted - names == set()


@pytest.mark.slow
def test_the_wheel_has_the_program_the_model_and_both_licenses(plain_wheel):
    names = packages.names_in_wheel(plain_wheel)
    assert packages.IN_EVERY_WHEEL - names == set()
    assert not [name for name in names if name.startswith("tests/")]
    metadata = packages.read_metadata(plain_wheel)
    assert metadata["License-Expression"] == "Apache-2.0 AND CC-BY-SA-3.0 AND MIT"


@pytest.mark.slow
def test_a_wheel_without_kernels_is_tagged_for_every_machine(plain_wheel):
    assert plain_wheel.name.endswith("-py3-none-any.whl")
    assert packages.read_metadata(plain_wheel, "WHEEL")["Root-Is-Purelib"] == "true"
    assert not [name for name in packages.names_in_wheel(plain_wheel) if name.endswith(".so")]


@pytest.mark.slow
@builds_kernels
def test_a_wheel_with_kernels_is_tagged_for_this_machine(tree, tmp_path):
    # Writes an empty file where a compiler would write its result.
    compiler = tmp_path / "compiler"
    compiler.write_text(
        '#!/bin/sh\nwhile [ $# -gt 0 ]; do if [ "$1" = -o ]; then touch "$2"; fi; shift; done\n'
    )
    compiler.chmod(0o755)
    wheel = packages.build_wheel(tree, tmp_path / "wheel", CC=str(compiler), CXX=str(compiler))
    machine = platform.machine().lower()
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert wheel.stem.split("-")[2] == version
    assert wheel.stem.endswith(machine)
    assert packages.read_metadata(wheel, "WHEEL")["Root-Is-Purelib"] == "false"
    assert len([name for name in packages.names_in_wheel(wheel) if name.endswith(".so")]) == 5


def test_every_license_that_is_named_comes_as_text():
    named = PROJECT["license"].split(" AND ")
    for path in MODELS.iterdir():
        licence = json.loads((path / "config.json").read_text())["about"]["license"]
        assert licence in [name.lower() for name in named]
        assert f"src/elmore/models/{path.name}" in (ROOT / "NOTICE").read_text()
    for name in named:
        text = ROOT / ("LICENSE" if name == "Apache-2.0" else f"LICENSES/{name}.txt")
        shortest = 1000 if name == "MIT" else 9000
        assert len(text.read_text()) > shortest  # all of it, no mere link
    patterns = PROJECT["license-files"]
    found = {path for pattern in patterns for path in ROOT.glob(pattern)}
    assert {ROOT / "LICENSE", ROOT / "NOTICE", *(ROOT / "LICENSES").iterdir()} == found


def test_the_configs_at_the_top_are_those_of_the_package():
    for folder in ("configs", "configs/tasks"):
        top = {path.name: path.read_text() for path in (ROOT / folder).glob("*.toml")}
        package = ROOT / "src" / "elmore" / folder
        assert top == {path.name: path.read_text() for path in package.glob("*.toml")} != {}
