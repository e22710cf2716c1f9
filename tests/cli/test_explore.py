"""`elmore explore` indexes text where needed, and serves the page with it."""

from importlib import import_module

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")

import elmore
from elmore.cli import explore as command
from elmore.serve.settings import ServeSettings


@pytest.fixture
def started(monkeypatch):
    """The settings of the servers that would have been started, and what they announced."""
    found = []

    def serve(settings, *, announce):
        found.append(settings)
        announce("http://127.0.0.1:5")

    monkeypatch.setattr(import_module("elmore.serve.start"), "serve", serve)
    return found


@pytest.fixture
def opened(monkeypatch):
    """The addresses that were opened in a browser."""
    found = []
    monkeypatch.setattr("webbrowser.open", found.append)
    for name in ("SSH_CONNECTION", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    return found


def test_without_arguments_the_example_is_shown(elmore_command, started, opened):
    result = elmore_command("explore")
    assert result.status == 0, result.err
    assert started == [ServeSettings(port=0, has_access_log=False)]
    assert opened == ["http://127.0.0.1:5"]
    assert "open http://127.0.0.1:5 in a browser" in result.out


def test_a_text_is_indexed_once(elmore_command, started, opened, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "book.txt").write_text("A bank is a bank .\n")
    assert elmore_command("explore", "book.txt", "--no-browser").status == 0
    index = elmore.open_index("book.index")
    assert index.uses("bank").total == 2
    before = (tmp_path / "book.index" / "index.json").stat().st_mtime_ns
    assert elmore_command("explore", "book.txt", "--no-browser").status == 0
    assert (tmp_path / "book.index" / "index.json").stat().st_mtime_ns == before
    assert [settings.index for settings in started] == ["book.index", "book.index"]
    assert opened == []
    result = elmore_command("explore", "book.index", "--task", "a=b", "--no-browser")
    assert result.status == 0
    assert started[2].tasks == ("a=b",)


def test_a_folder_of_texts_is_indexed(elmore_command, started, opened, tmp_path, monkeypatch):
    texts = tmp_path / "texts"
    texts.mkdir()
    for name in ("a.txt", "b.txt"):
        (texts / name).write_text(f"The bank of {name} .\n")
    monkeypatch.chdir(tmp_path)
    assert elmore_command("explore", "texts/", "--no-browser").status == 0
    monkeypatch.chdir(texts)
    for _ in range(2):
        assert elmore_command("explore", ".", "--no-browser").status == 0
    assert [settings.index for settings in started] == ["texts.index"] * 3
    for folder in (tmp_path, texts):
        assert elmore.open_index(folder / "texts.index").uses("bank").total == 2


def test_a_damaged_index_is_not_taken_for_text(elmore_command, started, tmp_path):
    (tmp_path / "index.json").write_text("{")
    result = elmore_command("explore", str(tmp_path))
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "damaged" in result.err
    assert started == []


def test_mistakes_are_one_sentence(elmore_command, started, tmp_path):
    result = elmore_command("explore", str(tmp_path / "no.txt"))
    assert (result.status, result.err.count("\n")) == (2, 1)
    result = elmore_command("explore", str(tmp_path))
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert started == []


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"DISPLAY": ":0"}, True),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "1"}, False),
        ({"WAYLAND_DISPLAY": "w"}, True),
        ({}, False),
    ],
)
def test_a_browser_is_opened_only_on_a_screen(variables, expected, monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert command._has_browser() is expected
