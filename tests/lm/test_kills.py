"""A run may be killed at any moment, as often as you like: it ends as if it never was."""

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from elmore.lm.run import RUN
from tests.lm.processes import Place, command, finish, needs_fork

pytestmark = needs_fork

NUM_KILLS = 21
STEPS = (
    "training.max_steps=120",
    "run.heldout_steps=20",
    "optimizer.name=adamw",
    "optimizer.learning_rate=0.002",
    "optimizer.final_share=0.1",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place.make(tmp_path_factory.mktemp("kills"))


@pytest.fixture(scope="module")
def whole(place):
    """A run that was left in peace."""
    place.complete("whole", *STEPS)
    return "whole"


@pytest.fixture(scope="module")
def short(place):
    """Another, of 12 steps."""
    place.complete("short")
    return "short"


@pytest.mark.slow
def test_kills_at_random_moments_change_nothing(place, whole):
    chooser = random.Random(7)
    killed_at = []
    while len(killed_at) < NUM_KILLS:
        # Checkpoints after every step, so that many kills fall into the writing of one.
        changes = (*STEPS, f"run.checkpoint_steps={chooser.choice([1, 1, 3])}")
        with place.forked("random", *changes) as processes:
            place.wait_for_step("random", place.last_step("random") + chooser.randint(1, 3))
            time.sleep(chooser.uniform(0, 0.02))
            processes.kill()
            assert processes.wait() == [-signal.SIGKILL], processes.printed()
        killed_at.append(place.last_step("random"))
    assert len(set(killed_at)) > NUM_KILLS // 2, "kills all over the run"
    place.complete("random", *STEPS)
    place.assert_alike("random", whole)
    assert place.list_files("random") == place.list_files(whole)


def die_at(operation, folder):
    """Let a process kill itself before the n-th time that it changes files of a folder."""
    num_done = 0

    def count(event, arguments):
        nonlocal num_done
        is_change = event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate")
        if event == "open" and str(arguments[0]).startswith(str(folder)):
            is_change = bool(arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        num_done += is_change
        if is_change and num_done == operation:
            os.kill(os.getpid(), signal.SIGKILL)

    return lambda rank: sys.addaudithook(count)


@pytest.mark.slow
def test_kills_between_any_two_changes_of_files_change_nothing(place):
    """The settings, metrics, checkpoints, the best weights, the model: all is whole or redone."""
    changes = ("training.max_steps=8", "run.checkpoint_steps=2", "run.patience=9")
    place.complete("files", *changes)
    chooser = random.Random(1)
    num_kills = 0
    while num_kills < 16:
        # In the order of the run: from its beginning to the writing of the model.
        operation = num_kills % 8 + 1 if num_kills < 8 else chooser.randint(8, 40)
        die = die_at(operation, place.folder / "cut")
        with place.forked("cut", *changes, in_child=die) as processes:
            (status,) = processes.wait()
            assert status in (0, -signal.SIGKILL), processes.printed()
        num_kills += status != 0
    place.complete("cut", *changes)
    place.assert_alike("cut", "files")
    assert place.list_files("cut") == place.list_files("files")


@pytest.mark.slow
def test_a_restart_that_was_killed_can_be_restarted(place):
    place.complete("again", "training.max_steps=4", "run.checkpoint_steps=1")
    expected = place.list_files("again")
    for operation in (2, 5, 9):
        die = die_at(operation, place.folder / "again")
        few = "training.max_steps=4"
        with place.forked("again", few, in_child=die, options=["--restart"]) as processes:
            assert processes.wait() == [-signal.SIGKILL], processes.printed()
    place.complete("again", "training.max_steps=4", "run.checkpoint_steps=1", options=["--restart"])
    assert place.list_files("again") == expected


@pytest.mark.parametrize("num_removed", range(3))
def test_a_folder_whose_restart_was_cut_short_is_still_that_of_a_run(
    place, tmp_path, monkeypatch, num_removed
):
    for name in ("settings.json", "metrics.jsonl", "report.json"):
        shutil.copy(place.folder / "first" / name, tmp_path)
    left = iter(range(num_removed))
    unlink = Path.unlink
    monkeypatch.setattr(Path, "unlink", lambda path, **how: (next(left), unlink(path, **how)))
    with pytest.raises(StopIteration):
        RUN.clear(tmp_path)
    assert len(list(tmp_path.iterdir())) == 3 - num_removed
    RUN.check(tmp_path)


def signalling(number, *, in_method, at_step=None):
    """Let a process signal itself when it calls a method that shows something to the user."""

    def patch(rank):
        def send(self, *arguments):
            if at_step in (None, getattr(arguments[0], "step", arguments[0])):
                os.kill(os.getpid(), number)

        display = "elmore.cli.training_display.TrainingDisplay"
        pytest.MonkeyPatch().setattr(f"{display}.{in_method}", send)

    return patch


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_after_a_step_with_a_checkpoint(place, short, number):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("these tests were started so that the signal is ignored, as under nohup")
    stop = signalling(number, in_method="on_step", at_step=6)
    with place.forked(number.name, in_child=stop) as processes:
        assert processes.wait() == [128 + number], processes.printed()
        message = "elmore: stopped after step 7; rerun the same command to resume\n"
        assert processes.printed().endswith(message)
    assert place.checkpoints(number.name)[-1] == 7
    place.complete(number.name)
    place.assert_alike(number.name, short)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("in_method", "at_step"), [("on_checkpoint", 12), ("on_stage", "final measurements")]
)
def test_a_signal_after_the_last_step_is_handled_too(place, short, in_method, at_step):
    """It does not wait for measurements that may take minutes, which are done again later."""
    stop = signalling(signal.SIGTERM, in_method=in_method, at_step=at_step)
    with place.forked(in_method, in_child=stop) as processes:
        assert processes.wait() == [128 + signal.SIGTERM], processes.printed()
        assert "after step 12; rerun the same command to resume" in processes.printed()
    assert not (place.folder / in_method / "model").exists()
    place.complete(in_method)
    place.assert_alike(in_method, short)


@pytest.mark.slow
def test_the_command_as_users_start_it(place, whole):
    """With an import of its own: killed, then asked to stop, then left to its end."""
    arguments = place.arguments("cold", *STEPS, "run.checkpoint_steps=2")
    with command("elmore", *arguments) as process:
        place.wait_for_step("cold", 5)
        process.kill()
        assert finish(process)[0] == -signal.SIGKILL
    step = place.last_step("cold")
    with command("elmore", *arguments) as process:
        place.wait_for_step("cold", step + 3)
        process.terminate()
        status, printed = finish(process)
    assert status == 128 + signal.SIGTERM
    assert "resuming at step" in printed
    assert "rerun the same command to resume" in printed.splitlines()[-1]
    place.complete("cold", *STEPS)
    place.assert_alike("cold", whole)
