import io
import math
import re

import pytest
from rich.console import Console

from elmore.cli.training_display import TrainingDisplay
from elmore.lm.metrics import HeldoutResult, RunProgress


def progress(step, *, loss=5.0, perplexity=None, seconds_left=100.0):
    return RunProgress(
        step=step,
        num_steps=1000,
        tokens=2560 * step,
        num_tokens=2_560_000,
        loss=loss,
        perplexity=perplexity,
        tokens_per_second=1534.2,
        seconds_left=seconds_left,
    )


def heldout(step, perplexity):
    return HeldoutResult(
        step=step,
        tokens=2560 * step,
        seconds=1.0,
        forward_perplexity=perplexity - 1,
        backward_perplexity=perplexity + 1,
        perplexity=perplexity,
        num_predictions=100,
    )


class Stage:
    """A display on a file or on a terminal, and a clock that stands still unless it is moved."""

    def __init__(self, *, is_terminal):
        self.file = io.StringIO()
        self.now = 0.0
        self.console = Console(
            file=self.file, force_terminal=is_terminal, width=100, _environ={"TERM": "xterm"}
        )
        self.display = TrainingDisplay(self.console, clock=lambda: self.now)

    @property
    def text(self):
        """What was printed, without colors and movements of the cursor."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.file.getvalue())

    @property
    def lines(self):
        return self.text.splitlines()


@pytest.fixture
def log():
    return Stage(is_terminal=False)


@pytest.fixture
def terminal():
    return Stage(is_terminal=True)


def test_a_log_has_one_line_per_minute_and_one_for_the_end(log):
    with log.display.shown():
        for step in range(1, 301):
            log.now = float(step)
            log.display.on_step(progress(step))
    shown = [int(re.match(r"step (\d+) of 1,000", line)[1]) for line in log.lines]
    assert shown == [1, 61, 121, 181, 241, 300]
    assert log.lines[0] == (
        "step 1 of 1,000 (0%): loss 5.000, 2.56k tokens, 1,534 tokens/s, 1 min 40 s left"
    )


def test_a_log_has_every_heldout_result_and_message_but_no_checkpoint(log):
    with log.display.shown():
        log.display.on_step(progress(1))
        log.display.on_heldout(heldout(1, 48.22))
        log.display.on_checkpoint(1)
        log.display.on_message("[bold]not markup[/bold]")
        log.display.on_heldout(heldout(2, 1234.6))
    assert log.lines[1:] == [
        "step 1: held-out perplexity 48.2 (forward 47.2, backward 49.2)",
        "[bold]not markup[/bold]",
        "step 2: held-out perplexity 1,235 (forward 1,234, backward 1,236), before 48.2",
    ]
    assert "\x1b" not in log.file.getvalue()


def test_other_work_counts_among_the_lines_of_a_minute(log):
    with log.display.shown():
        for second in range(100):
            log.now = float(second)
            log.display.on_stage("measuring perplexity", second / 100)
        log.now = 200.0
        log.display.on_stage("measuring perplexity", 1.0)
        log.display.on_step(progress(1))
    assert log.lines[:2] == ["measuring perplexity: 0%", "measuring perplexity: 60%"]
    assert log.lines[2].startswith("step 1 of")


def test_a_long_line_of_a_log_is_not_broken(log):
    with log.display.shown():
        log.display.on_message("word " * 100)
    assert len(log.lines) == 1


def test_a_variable_for_colors_makes_no_terminal_of_a_log(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    display = TrainingDisplay()
    with display.shown():
        display.on_step(progress(1))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("step 1 of 1,000")


def test_the_loss_shown_is_smooth_and_one_that_is_not_a_number_is_seen_but_passes(log):
    losses = [4.0, 6.0] * 200 + [math.nan, 4.0]
    with log.display.shown():
        for step, loss in enumerate(losses):
            log.now = 100.0 * step
            log.display.on_step(progress(step, loss=loss))
    shown = [float(re.search(r"loss ([\d.]+|nan)", line)[1]) for line in log.lines]
    assert shown[:2] == [4.0, pytest.approx(5.0, abs=0.2)]
    assert shown[399] == pytest.approx(5.0, abs=0.2)
    assert math.isnan(shown[400])
    assert shown[401] == pytest.approx(5.0, abs=0.2)


def test_a_terminal_shows_the_bar_and_keeps_the_results(terminal):
    with terminal.display.shown():
        terminal.display.on_step(progress(250, perplexity=51.0))
        terminal.display.on_checkpoint(200)
        terminal.display.on_stage("measuring perplexity", 0.4)
        terminal.display._live._live.refresh()
        terminal.display.on_heldout(heldout(250, 48.2))
    for part in (
        "250 of 1,000 steps · 1 min 40 s left",
        "loss 5.000   held-out perplexity 51.0   tokens/s 1,534   tokens 640k   saved at step 200",
        "measuring perplexity ━",
        "40%",
        "step 250: held-out perplexity 48.2 (forward 47.2, backward 49.2), before 51.0",
    ):
        assert part in terminal.text
    assert terminal.lines[-1].startswith("step 250 of 1,000 (25%): loss 5.000")
    assert "\x1b[?25h" in terminal.file.getvalue()  # the cursor is back


def test_an_interrupted_run_leaves_the_terminal_in_order(terminal):
    def run():
        with terminal.display.shown():
            terminal.display.on_step(progress(3))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    hidden, shown = "\x1b[?25l", "\x1b[?25h"
    assert terminal.file.getvalue().index(hidden) < terminal.file.getvalue().rindex(shown)
    assert terminal.lines[-1].startswith("step 3 of")


def test_work_of_unknown_length_needs_no_steps(terminal):
    with terminal.display.shown():
        terminal.display.on_stage("reading the corpus")
        terminal.display._live._live.refresh()
        terminal.display.on_stage("reading the corpus", 1.0)
        terminal.display.on_step(progress(0, seconds_left=None, loss=math.nan))
    assert "reading the corpus ━" in terminal.text
    assert "0 of 1,000 steps\n" in terminal.text
