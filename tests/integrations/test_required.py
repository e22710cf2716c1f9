import re
import tomllib
from importlib import import_module, metadata, reload
from pathlib import Path

import pytest

from elmore import ElmoreError, MissingExtraError
from elmore.integrations import required

ROOT = Path(__file__).parents[2]


def install(monkeypatch, version):
    def find_version(distribution):
        if version is None:
            raise metadata.PackageNotFoundError(distribution)
        return version

    monkeypatch.setattr(required.metadata, "version", find_version)


def require():
    required.require("made-up", extra="made", at_least=(3, 8), below=(4,))


@pytest.mark.parametrize("version", ["3.8", "3.8.0", "3.8.18", "3.10.0rc1"])
def test_versions_that_work(monkeypatch, version):
    install(monkeypatch, version)
    require()


def test_a_missing_tool_names_its_extra(monkeypatch):
    install(monkeypatch, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'elmore\[made\]'$"):
        require()


@pytest.mark.parametrize("version", ["3.7.9", "2.9", "4.0.0.dev1", "4.1"])
def test_a_wrong_version_is_named(monkeypatch, version):
    install(monkeypatch, version)
    with pytest.raises(ElmoreError) as caught:
        require()
    assert str(caught.value) == (
        f"made-up {version} is installed, but elmore.integrations.made needs at least 3.8 and less "
        "than 4: pip install 'elmore[made]'"
    )


def test_a_version_without_an_upper_bound(monkeypatch):
    install(monkeypatch, "1.5.2")
    with pytest.raises(ElmoreError, match=r"needs 1\.6 or later"):
        required.require("made-up", extra="made", at_least=(1, 6))


@pytest.mark.parametrize(("tool", "version"), [("onnx", "1.16.2"), ("onnxruntime", "1.19.0")])
def test_an_old_onnx_is_named(monkeypatch, tool, version):
    module = pytest.importorskip(tool, reason="needs elmore[onnx]")
    package = import_module("elmore.export.onnx")
    monkeypatch.setattr(module, "__version__", version)
    with pytest.raises(ElmoreError, match=rf"^{tool} {version} is installed, but exporting to"):
        reload(package)


# The version in pyproject.toml is the one that is checked.
@pytest.mark.parametrize("extra", ["sklearn", "spacy", "gensim", "sentence-transformers", "flair"])
def test_versions_are_those_that_the_extra_installs(extra):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (wanted,) = project["optional-dependencies"][extra]
    name, bounds = re.fullmatch(r"([\w-]+)(?:\[\w+\])?(\S+)", wanted).groups()
    path = ROOT / "src" / "elmore" / "integrations" / extra.replace("-", "_")
    source = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text()
    call = re.search(r"^require\((.*?)\)$", source, flags=re.MULTILINE | re.DOTALL)[1]
    asked = eval(f"dict(distribution={call})")
    shown = f">={required._show(asked['at_least'])}"
    if "below" in asked:
        shown += f",<{required._show(asked['below'])}"
    assert (asked["distribution"], shown) == (name, bounds)
    assert asked["extra"] == extra
