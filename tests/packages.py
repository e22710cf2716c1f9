"""Build source packages and wheels, and see what is in them.

`python -m tests.packages`, which is `make test-sdist`, builds the source package, unpacks it in
another place, builds a wheel from it and runs the quick tests on what the wheel installs.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from email.message import Message
from email.parser import Parser
from pathlib import Path

from tests.kernels import libraries

ROOT = libraries.ROOT
# What a source package must have; the rest of a working copy is nobody's business.
FILES = (
    *("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "MANIFEST.in", "Makefile"),
    *("NOTICE", "README.md", "README.zh-CN.md", "mkdocs.yml", "pyproject.toml", "setup.py"),
)
FOLDERS = (
    "LICENSES",
    "benchmarks",
    "configs",
    "docs",
    "examples",
    "recipes",
    "scripts",
    "src",
    "tests",
    "web",
)
MADE_LATER = ("*.so", "*.pyc", "__pycache__", "*.egg-info", "node_modules")

# A few of each kind of file.
IN_EVERY_WHEEL = {
    "elmore/cli/app.py",
    "elmore/py.typed",
    "elmore/configs/tiny.toml",
    "elmore/configs/tasks/entities.toml",
    "elmore/models/english/model.safetensors",
    "elmore/models/english/README.md",
    "elmore/explore/example/index.json",
    "elmore/explore/example/README.md",
    "elmore/serve/page/index.html",
    "elmore/serve/page/assets/page.js",
    ".dist-info/licenses/LICENSE",
    ".dist-info/licenses/NOTICE",
    ".dist-info/licenses/LICENSES/CC-BY-SA-3.0.txt",
    ".dist-info/licenses/LICENSES/MIT.txt",
}

QUICK_TESTS = (
    "tests/test_packages.py",
    "tests/test_import_map.py",
    "tests/test_readme.py::test_every_link_leads_somewhere",
    "tests/test_startup.py",
    "tests/text",
    "tests/kernels/test_build.py",
    "tests/kernels/test_library.py",
    "tests/weights/test_loading.py",
    "tests/embed/test_embedder.py",
    "tests/lm/test_settings.py",
    "tests/cli/test_convert_and_info.py",
)
MOST_SECONDS = 600


def copy_project(target: Path) -> Path:
    """Copy all that packages are made of, with little in place of large weights."""
    for name in FILES:
        shutil.copy(ROOT / name, target)
    for name in FOLDERS:
        shutil.copytree(
            ROOT / name,
            target / name,
            ignore=shutil.ignore_patterns(*MADE_LATER),
            copy_function=_copy_in_small,
        )
    return target


def _copy_in_small(source: str, target: str) -> None:
    if source.endswith(".safetensors"):
        Path(target).write_bytes(b"weights")
    else:
        shutil.copy(source, target)


def run_setup(tree: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run setup.py in a copy of the project."""
    return _run(tree, ["setup.py", *arguments], environment)


def _run(
    tree: Path, arguments: Sequence[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result


def build_sdist(tree: Path, target: Path) -> Path:
    """Build the source package."""
    return _build(tree, target, kind="sdist")


def build_wheel(tree: Path, target: Path, **environment: str) -> Path:
    """Build the wheel."""
    return _build(tree, target, kind="wheel", **environment)


def _build(tree: Path, target: Path, *, kind: str, **environment: str) -> Path:
    """Build as pip does."""
    target.mkdir()
    script = f"from setuptools import build_meta; build_meta.build_{kind}({str(target)!r})"
    _run(tree, ["-c", script], environment)
    (package,) = target.iterdir()
    return package


def names_in_sdist(package: Path) -> set[str]:
    """Return the files of a source package, without the folder that they are in."""
    with tarfile.open(package) as file:
        return {member.name.partition("/")[2] for member in file if member.isfile()}


def names_in_wheel(wheel: Path) -> set[str]:
    """Return the files of a wheel, `.dist-info` in place of that folder's whole name."""
    with zipfile.ZipFile(wheel) as file:
        return {_shorten(name) for name in file.namelist()}


def read_metadata(wheel: Path, name: str = "METADATA") -> Message:
    """Read what a wheel says of itself."""
    with zipfile.ZipFile(wheel) as file:
        (path,) = [path for path in file.namelist() if _shorten(path) == f".dist-info/{name}"]
        return Parser().parsestr(file.read(path).decode())


def _shorten(name: str) -> str:
    folder, slash, rest = name.partition(".dist-info/")
    return f".dist-info/{rest}" if slash and "/" not in folder else name


def main() -> None:
    """Build, unpack, build again, install and test."""
    with tempfile.TemporaryDirectory(prefix="elmore-packages-") as name:
        folder = Path(name)
        package = build_sdist(ROOT, folder / "sdist")
        print(f"built {package.name}, {package.stat().st_size / 1e6:.0f} MB", flush=True)
        with tarfile.open(package) as file:
            file.extractall(folder, filter="data")
        (tree,) = folder.glob("elmore-*")
        wheel = build_wheel(tree, folder / "wheel")
        print(f"built {wheel.name}, {wheel.stat().st_size / 1e6:.0f} MB", flush=True)
        missing = IN_EVERY_WHEEL - names_in_wheel(wheel)
        assert not missing, f"{wheel.name} lacks {missing}"
        with zipfile.ZipFile(wheel) as file:
            file.extractall(folder / "installed")
        run_tests(tree, installed=folder / "installed")


def run_tests(tree: Path, *, installed: Path, tests: Sequence[str] = QUICK_TESTS) -> None:
    """Run tests of an unpacked source package on what its wheel installs."""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    # The tests must not import another elmore, such as the one that this environment has.
    where = "import elmore; print(elmore.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", where], cwd=tree, env=environment, capture_output=True, check=True
    )
    assert Path(found.stdout.decode().strip()).is_relative_to(installed), found.stdout
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=tree, env=environment, timeout=MOST_SECONDS, check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
