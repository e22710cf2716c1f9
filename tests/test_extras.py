import re
import sys
import tomllib
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType

import pytest

from elmore import ElmoreError, MissingExtraError, extras, require_extra

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REQUIREMENTS = [
    "torch>=2.6",
    'made-up[train]<4,>=3.8; extra == "made"',
    'other>=17; extra == "made"',
    'open>=1.6; extra == "open"',
]


def install(monkeypatch, **versions):
    """Pretend that libraries are installed, and that elmore has the extras above."""

    def find_version(library):
        if library.replace("-", "_") not in versions:
            raise metadata.PackageNotFoundError(library)
        return versions[library.replace("-", "_")]

    monkeypatch.setattr(extras.metadata, "requires", lambda _: REQUIREMENTS)
    monkeypatch.setattr(extras.metadata, "version", find_version)


@pytest.mark.parametrize("version", ["3.8", "3.8.0", "3.8.18", "3.10.0rc1"])
def test_versions_that_work(monkeypatch, version):
    install(monkeypatch, made_up=version, other="17.0")
    require_extra("made", needed_for="a test")


@pytest.mark.parametrize("versions", [{}, {"made_up": "3.8"}, {"other": "17"}])
def test_a_missing_library_names_the_extra(monkeypatch, versions):
    install(monkeypatch, **versions)
    with pytest.raises(MissingExtraError) as caught:
        require_extra("made", needed_for="a test")
    assert str(caught.value) == "a test needs an optional library: pip install 'elmore[made]'"


@pytest.mark.parametrize("version", ["3.7.9", "2.9", "4.0.0.dev1", "4.1"])
def test_a_wrong_version_is_named(monkeypatch, version):
    install(monkeypatch, made_up=version, other="17.0")
    with pytest.raises(ElmoreError) as caught:
        require_extra("made", needed_for="a test")
    assert str(caught.value) == (
        f"made-up {version} is installed, but a test needs made-up>=3.8,<4: "
        "pip install 'elmore[made]'"
    )


def test_a_version_without_an_upper_bound(monkeypatch):
    install(monkeypatch, open="1.5.2")
    with pytest.raises(ElmoreError, match=r"needs open>=1\.6: pip"):
        require_extra("open", needed_for="a test")


def test_a_library_under_another_name_has_the_version_of_its_module(monkeypatch):
    install(monkeypatch, other="17.0")  # as onnxruntime-gpu has the module onnxruntime
    module = ModuleType("made_up")
    module.__version__, module.__spec__ = "3.9", "not None"
    monkeypatch.setitem(sys.modules, "made_up", module)
    require_extra("made", needed_for="a test")
    module.__version__ = "3.7"
    with pytest.raises(ElmoreError, match=r"^made-up 3\.7 is installed"):
        require_extra("made", needed_for="a test")


def test_nothing_is_checked_if_elmore_itself_is_not_installed(monkeypatch):
    def refuse(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(extras.metadata, "requires", refuse)
    require_extra("onnx", needed_for="a test")


# The module that uses each extra, and the library that it checks.
USES = {
    "flair": ("elmore.integrations.flair", "flair"),
    "gensim": ("elmore.integrations.gensim", "gensim"),
    "keras": ("elmore.compat.keras_strings", "keras"),
    "onnx": ("elmore.export.onnx", "onnxruntime"),
    "sentence-transformers": (
        "elmore.integrations.sentence_transformers",
        "sentence-transformers",
    ),
    "sklearn": ("elmore.integrations.sklearn", "scikit-learn"),
    "spacy": ("elmore.integrations.spacy", "spacy"),
}


@pytest.mark.parametrize("extra", USES)
@pytest.mark.parametrize("version", [None, "0.0.1"])
def test_a_module_refuses_to_be_imported_without_its_library(monkeypatch, extra, version):
    module, library = USES[extra]
    find_version = metadata.version

    def find(name):
        return version if name == library else find_version(name)

    monkeypatch.setattr(extras, "_find_version", find)
    for name in [name for name in sys.modules if name.startswith(module)]:
        monkeypatch.delitem(sys.modules, name)
    expected = (
        rf" needs an optional library: pip install 'elmore\[{extra}\]'$"
        if version is None
        else rf"^{library} 0\.0\.1 is installed, but .* needs {library}>="
    )
    if extra == "flair":  # the only one that is not installed with the others
        monkeypatch.setattr(extras, "_find_version", lambda _: version)
    with pytest.raises(ElmoreError, match=expected):
        import_module(module)


def test_every_extra_that_is_named_exists():
    named = {
        match
        for path in (ROOT / "src").rglob("*.py")
        for match in re.findall(r"(?:extra=|require_extra\()\"([\w-]+)\"", path.read_text())
    }
    assert named >= USES.keys()
    assert named - {"forbid"} <= PROJECT["optional-dependencies"].keys()  # a setting of pydantic


def test_the_installed_requirements_are_those_of_the_project():
    for extra in USES:
        wanted = [re.match(r"[\w-]+", line)[0] for line in PROJECT["optional-dependencies"][extra]]
        assert [each.name for each in extras._read_requirements(extra)] == wanted
