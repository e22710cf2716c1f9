import pytest

from tests.cli.commands import Terminal


@pytest.fixture
def elmore_command(monkeypatch, capsys):
    """The `elmore` command, to be called with its arguments."""
    monkeypatch.setenv("COLUMNS", "100")
    return Terminal(monkeypatch, capsys)
