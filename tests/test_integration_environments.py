"""What counts as a failure when libraries are tested in environments of their own."""

import subprocess
from pathlib import Path

import pytest

from scripts import test_integrations as environments

PYTHON = Path("made") / "up" / "bin" / "python"


@pytest.fixture
def pip(monkeypatch):
    """Answer calls of pip with what the test puts here: an exit status and an error, or "hangs"."""
    answers = []

    def run(command, **settings):
        answer = answers.pop(0)
        if answer == "hangs":
            raise subprocess.TimeoutExpired(command, settings["timeout"])
        return subprocess.CompletedProcess(command, answer[0], stderr=answer[1])

    monkeypatch.setattr(environments.subprocess, "run", run)
    monkeypatch.setattr(environments.venv, "create", lambda *_, **__: None)
    return answers


def install():
    return environments.install(PYTHON, ("flair",))


def test_pip_is_tried_again(pip):
    pip += [(1, "Read timed out"), (0, "")]
    assert install() is None


@pytest.mark.parametrize("answers", [[(1, "Read timed out")] * 2, ["hangs"]])
def test_an_unreachable_index_is_reported_and_tolerated_only_on_demand(pip, answers):
    pip += answers
    result = install()
    assert result.startswith("NOT TESTED: pip could not install its packages in ")
    assert environments.is_failure(result, tolerant=False)
    assert not environments.is_failure(result, tolerant=True)


def test_contradicting_requirements_are_a_failure_at_once(pip):
    pip += [(1, "ERROR: ResolutionImpossible: for help visit https://pip.pypa.io")]
    assert environments.is_failure(install(), tolerant=True)


def test_failed_tests_are_a_failure():
    assert environments.is_failure("failed", tolerant=True)
    assert not environments.is_failure("passed", tolerant=False)
