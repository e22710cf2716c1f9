"""What a task's training shows: a bar on a terminal, else lines; a line per epoch on both."""

import io
import re
import warnings

import pytest
from rich.console import Console

from elmore.cli.fit_display import FitDisplay
from elmore.errors import DataWarning
from elmore.tasks.fit.progress import EpochResult, FitProgress

POINT = EpochResult(epoch=2, step=10, loss=0.51234, dev=71.256, seconds=12.7)


def show(display):
    with display.shown():
        display.on_stage("reading the data")
        display.on_stage("embedding, 10 of 20 tokens")
        display.on_stage("embedding, 20 of 20 tokens")
        progress = FitProgress(step=6, epoch=1, epoch_step=1, best_score=70.0)
        display.on_step(progress, num_steps=5, loss=0.5)
        display.on_epoch(POINT, is_best=True)


def test_one_line_per_epoch_on_standard_error(capsys):
    show(FitDisplay(score_name="f1"))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "embedding, 10 of 20 tokens",
        "epoch 2: loss 0.5123, dev f1 71.26 (best so far), 13 s",
    ]


class Log:
    """A display on a file, and a clock that is moved by hand."""

    def __init__(self):
        self.file = io.StringIO()
        self.now = 0.0
        console = Console(file=self.file, force_terminal=False)
        self.display = FitDisplay(console, clock=lambda: self.now)

    @property
    def lines(self):
        return self.file.getvalue().splitlines()


def test_a_log_has_one_line_per_minute_while_an_epoch_lasts():
    log = Log()
    with log.display.shown():
        for step in range(1, 201):
            log.now = float(step)
            progress = FitProgress(step=step, epoch=0, epoch_step=step)
            log.display.on_step(progress, num_steps=1200, loss=0.5)
            log_so_far = list(log.lines)
        assert log_so_far == [
            f"epoch 1, step {step} of 1,200: loss 0.5000" for step in (60, 120, 180)
        ]
        log.display.on_epoch(POINT, is_best=False)
        log.now += 59.0
        progress = FitProgress(step=201, epoch=1, epoch_step=1, best_score=71.256)
        log.display.on_step(progress, num_steps=1200, loss=0.4)
        assert len(log.lines) == 4, "the end of an epoch counts as a line of progress"
        log.now += 1.0
        log.display.on_step(progress, num_steps=1200, loss=0.4)
    assert log.lines[-1] == "epoch 2, step 1 of 1,200: loss 0.4000, best 71.26"


def test_a_log_has_one_line_per_minute_of_a_long_stage():
    log = Log()
    with log.display.shown():
        for second in range(130):
            log.now = float(second)
            log.display.on_stage(f"embedding, {second} of 200 tokens")
    assert log.lines == [f"embedding, {second} of 200 tokens" for second in (0, 60, 120)]


def test_data_warnings_are_one_line_and_others_unchanged(capsys):
    with FitDisplay().shown():
        warnings.warn("dev is odd", DataWarning, stacklevel=1)
        with pytest.warns(UserWarning, match="of a library"):
            warnings.warn("of a library", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "elmore: dev is odd\n"


def test_a_bar_on_a_terminal():
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=120, _environ={"TERM": "xterm"})
    show(FitDisplay(console, score_name="f1"))
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue())
    assert "epoch 2: loss 0.5123, dev f1 71.26 (best so far), 13 s" in text
    assert "━" in text
    assert "0:00:00 elapsed" in text


def test_a_variable_for_colors_makes_no_terminal_of_a_log(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    show(FitDisplay(score_name="f1"))
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("method", ["on_stage", "on_step"])
def test_before_it_is_shown_it_hears_and_says_nothing(capsys, method):
    display = FitDisplay()
    if method == "on_stage":
        display.on_stage("reading the data")
    else:
        display.on_step(FitProgress(epoch_step=1), num_steps=5, loss=0.5)
    assert capsys.readouterr().err == ""
