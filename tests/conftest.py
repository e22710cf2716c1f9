import pytest
import torch

from tests.cli.commands import Terminal

# Products of tiny matrices only wait for each other; tests about threads set their own number.
torch.set_num_threads(1)


@pytest.fixture
def elmore_command(monkeypatch, capsys):
    """The `elmore` command, to be called with its arguments."""
    monkeypatch.setenv("COLUMNS", "100")
    return Terminal(monkeypatch, capsys)
