"""A training that is killed between any two changes of files ends as if it never was."""

import os
import signal
import sys
import traceback

import pytest

from tests.lm.processes import needs_fork
from tests.tasks.fit.made_up import Place, are_alike, without_times

pytestmark = needs_fork


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = Place(tmp_path_factory.mktemp("kills"))
    made.fit("whole", *CHANGES)  # what torch imports at a first step takes seconds
    return made


# A checkpoint after every step, so that kills fall between its files.
CHANGES = ("training.checkpoint_minutes=1e-9", "training.max_epochs=2", "training.batch_size=10")


def die_at(operation, folder):
    """Let this process kill itself before the n-th time that it changes files of a folder."""
    num_done = 0

    def count(event, arguments):
        nonlocal num_done
        is_change = event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir")
        if event == "open" and str(arguments[0]).startswith(str(folder)):
            is_change = bool(arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        num_done += is_change
        if is_change and num_done == operation:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def fit_in_fork(place, run, *, operation, **how):
    """Return how a process that trains ended."""
    process = os.fork()
    if process == 0:
        try:
            die_at(operation, place.folder / run)
            place.fit(run, *CHANGES, **how)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


@pytest.mark.slow
def test_kills_between_any_two_changes_of_files_change_nothing(place):
    statuses = []
    for operation in (1, 2, 3, 4, 5, 7, 9, 12, 16, 21, 27, 18, 14, 33, 22, 8, 11, 6, 13):
        statuses.append(fit_in_fork(place, "cut", operation=operation))
    assert set(statuses) <= {0, -signal.SIGKILL}
    assert statuses.count(-signal.SIGKILL) > 8
    report = place.fit("cut", *CHANGES)
    assert without_times(report) == without_times(place.fit("whole", *CHANGES))
    assert are_alike(place.folder / "cut", place.folder / "whole")
    assert place.list_files("cut") == place.list_files("whole")


@pytest.mark.slow
def test_a_restart_that_was_killed_can_be_restarted(place):
    place.fit("again", *CHANGES)
    for operation in (2, 4, 6, 8):
        status = fit_in_fork(place, "again", operation=operation, restart=True)
        assert status == -signal.SIGKILL
    place.fit("again", *CHANGES, restart=True)
    assert are_alike(place.folder / "again", place.folder / "whole")
    assert place.list_files("again") == place.list_files("whole")
