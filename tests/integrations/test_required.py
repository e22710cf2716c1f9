from importlib import metadata

import pytest

from elmore import ElmoreError, MissingExtraError
from elmore.integrations import required


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
