import pytest
import torch

from elmore.weights import loading
from tests.cli.commands import Terminal
from tests.tiny import TRAINED_MODEL

# Products of tiny matrices only wait for each other; tests about threads set their own number.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _small_default(monkeypatch):
    """Without a name, use the tests' own model; test_shipped_model.py asks for the other."""
    monkeypatch.setattr(loading, "DEFAULT_MODEL", TRAINED_MODEL)


@pytest.fixture
def elmore_command(monkeypatch, capsys):
    """The `elmore` command, to be called with its arguments."""
    monkeypatch.setenv("COLUMNS", "100")
    return Terminal(monkeypatch, capsys)
