"""Every bar writes both times with what they are: elapsed, and left."""

import io
import re

import pytest
from rich.console import Console

from elmore.cli.bars import TimeColumn, make_bar, make_spinner


class Clock:
    """A clock that is moved by hand."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def terminal(*, width=120):
    return Console(file=io.StringIO(), force_terminal=True, width=width, _environ={"TERM": "xterm"})


def shown(console):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console.file.getvalue())


@pytest.fixture
def clock():
    return Clock()


def move(bar, clock, *, total):
    """Let a job do 40 of its units in 40 seconds."""
    bar.get_time = clock
    task = bar.add_task("embedding", total=total)
    for second in (20, 40):
        clock.now = float(second)
        bar.update(task, completed=second)
    return bar.tasks[0]


def test_both_times_are_named(clock):
    task = move(make_bar(console=terminal()), clock, total=100)
    assert TimeColumn().render(task).plain == "0:00:40 elapsed, 0:01:00 left"
    text = TimeColumn(left="left in this epoch").render(task).plain
    assert text == "0:00:40 elapsed, 0:01:00 left in this epoch"


def test_a_time_that_is_unknown_is_not_written(clock):
    task = move(make_bar(console=terminal()), clock, total=None)
    assert TimeColumn().render(task).plain == "0:00:40 elapsed"


def test_a_bar_shows_its_fields_and_times_on_a_terminal():
    console = terminal()
    with make_bar("{task.fields[tokens]:,} tokens", console=console) as bar:
        bar.add_task("embedding", total=10, tokens=1234)
        bar.refresh()
    assert re.search(r"embedding ━+ 1,234 tokens 0:00:00 elapsed", shown(console))


def test_a_narrow_terminal_shortens_the_bar_and_not_the_times(clock):
    console = terminal(width=60)
    bar = make_bar(console=console)
    move(bar, clock, total=100)
    console.print(bar)
    (line,) = shown(console).strip().splitlines()
    assert line.startswith("embedding ━")
    assert line.endswith("0:00:40 elapsed, 0:01:00 left")


def test_a_spinner_shows_the_time_elapsed():
    console = terminal()
    with make_spinner(console=console) as bar:
        bar.add_task("predicting", total=None)
        bar.refresh()
    assert "predicting 0:00:00 elapsed" in shown(console)


def test_a_file_gets_no_bar():
    console = Console(file=io.StringIO(), force_terminal=False)
    with make_bar(console=console) as bar:
        bar.add_task("embedding", total=10)
        bar.refresh()
    assert console.file.getvalue() == ""
