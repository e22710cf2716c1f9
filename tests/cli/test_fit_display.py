"""What a task's training shows: where there is no terminal, a line an epoch and a long stage."""

import warnings

import pytest

from elmore.cli.fit_display import FitDisplay
from elmore.errors import DataWarning
from elmore.tasks.fit.progress import CurvePoint, FitProgress

POINT = CurvePoint(epoch=2, step=10, loss=0.51234, dev=71.256, seconds=12.7)


def show(display):
    with display.shown():
        display.on_stage("reading the data")
        display.on_stage("embedding, 10 of 20 tokens")
        display.on_stage("embedding, 20 of 20 tokens")
        progress = FitProgress(step=6, epoch=1, place=1, best_score=70.0)
        display.on_step(progress, num_steps=5, loss=0.5)
        display.on_epoch(POINT, is_best=True)


def test_a_line_an_epoch_on_standard_error(capsys):
    show(FitDisplay(score_name="f1"))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "embedding, 10 of 20 tokens",
        "epoch 2: loss 0.5123, dev f1 71.26 (best so far), 13 s",
    ]


def test_odd_data_is_told_in_a_line_and_other_warnings_as_ever(capsys):
    with FitDisplay().shown():
        warnings.warn("dev is odd", DataWarning, stacklevel=1)
        with pytest.warns(UserWarning, match="of a library"):
            warnings.warn("of a library", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "elmore: dev is odd\n"


def test_a_bar_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    show(FitDisplay(score_name="f1"))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "epoch 2: loss 0.5123, dev f1 71.26 (best so far), 13 s" in printed.err


@pytest.mark.parametrize("method", ["on_stage", "on_step"])
def test_before_it_is_shown_it_hears_and_says_nothing(capsys, method):
    display = FitDisplay()
    if method == "on_stage":
        display.on_stage("reading the data")
    else:
        display.on_step(FitProgress(place=1), num_steps=5, loss=0.5)
    assert capsys.readouterr().err == ""
