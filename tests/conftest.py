import gc
import os
from collections.abc import Iterator
from contextlib import nullcontext

import pytest
import torch

from elmore.weights import loading
from tests import quick_rules
from tests.cli.commands import Terminal
from tests.kernels import variants
from tests.tiny import TRAINED_MODEL

# Products of tiny matrices only wait for each other; tests about threads set their own number.
torch.set_num_threads(1)


def _is_bounded(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is None and not variants.IS_SANITIZED


def pytest_collection_finish() -> None:
    """Let the garbage collector skip what the imports and the collected tests allocated."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let tests without the mark `slow` start no process."""
    with quick_rules.no_processes() if _is_bounded(item) else nullcontext():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Let tests without the mark `slow` take little time."""
    with quick_rules.bounded_time() if _is_bounded(pyfuncitem) else nullcontext():
        return (yield)


@pytest.fixture(autouse=True)
def _small_default(monkeypatch):
    """Without a name, use the tests' own model; test_shipped_model.py asks for the other."""
    monkeypatch.setattr(loading, "DEFAULT_MODEL", TRAINED_MODEL)


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    """No test cuts the power, so none needs to wait until its files are safe from that."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def elmore_command(monkeypatch, capsys):
    """The `elmore` command, to be called with its arguments."""
    monkeypatch.setenv("COLUMNS", "100")
    return Terminal(monkeypatch, capsys)
