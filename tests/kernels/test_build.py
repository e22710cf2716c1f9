"""setup.py builds what it can, and where it can build nothing the package is whole without."""

import importlib.util
import platform
import sys

import pytest

from elmore.kernels import library
from tests import packages
from tests.kernels import libraries, variants

pytestmark = [
    variants.not_sanitized,
    pytest.mark.skipif(
        importlib.util.find_spec("setuptools") is None,
        reason="setuptools, which setup.py imports, is not installed",
    ),
]


@pytest.fixture
def tree(tmp_path):
    return packages.copy_project(tmp_path)


@pytest.mark.parametrize(
    ("machine", "system"), [("aarch64", "linux"), ("arm64", "darwin"), ("AMD64", "win32")]
)
def test_other_machines_build_nothing(monkeypatch, machine, system):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(sys, "platform", system)
    assert libraries.load_setup().describe_libraries() == []


def test_every_library_that_is_built_can_be_chosen(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.chdir(libraries.ROOT)
    built = libraries.load_setup().describe_libraries()
    names = {extension.name.removeprefix("elmore.kernels._") for extension in built}
    assert names == {"cpu", *library._CHOICES[None]}
    assert all(extension.optional for extension in built)
    for extension in built:
        assert all((libraries.ROOT / source).is_file() for source in extension.sources)


@pytest.mark.slow
def test_without_a_compiler_the_package_is_built_without_libraries(tree):
    if platform.machine().lower() not in {"x86_64", "amd64"}:
        pytest.skip("nothing is compiled on this machine")
    result = packages.run_setup(
        tree, "build_ext", "--build-lib", "built", CC="/bin/false", CXX="/bin/false"
    )
    assert list(tree.rglob("*.so")) == []
    for name in ("cpu", *library._CHOICES[None]):
        assert f"note: elmore.kernels._{name} was not built" in result.stdout


@pytest.mark.slow
def test_the_source_package_has_all_that_is_compiled(tree):
    names = packages.names_in_sdist(packages.build_sdist(tree, tree / "packages"))
    native = {path.relative_to(tree).as_posix() for path in (tree / "src").rglob("native/*.*")}
    assert {"setup.py", "pyproject.toml"} <= names
    assert native
    assert native <= names
