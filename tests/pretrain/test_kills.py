"""A run may be killed at any moment, as often as you like: it ends as if it never was."""

import os
import random
import signal
import sys
import time

import pytest

from tests.pretrain.processes import Place, command, finish, needs_fork, wait_until

pytestmark = needs_fork

NUM_KILLS = 22
STEPS = "training.max_steps=60"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place.make(tmp_path_factory.mktemp("kills"))


@pytest.fixture(scope="module")
def whole(place):
    """A run that was left in peace."""
    place.complete("whole", STEPS)
    return "whole"


def test_kills_at_random_moments_change_nothing(place, whole):
    chooser = random.Random(7)
    killed_at = []
    while len(killed_at) < NUM_KILLS:
        # Checkpoints after every step, so that many kills fall into the writing of one.
        processes = place.fork("random", STEPS, f"run.checkpoint_steps={chooser.choice([1, 1, 3])}")
        begun_at = place.last_step("random")
        target = begun_at + chooser.randint(1, 4)
        wait_until(lambda: place.last_step("random") >= target or processes.has_ended(), target)
        time.sleep(chooser.uniform(0, 0.02))
        assert not processes.has_ended(), processes.printed()
        processes.kill()
        processes.wait()
        killed_at.append(place.last_step("random"))
    assert len(set(killed_at)) > 10, "kills all over the run"
    place.complete("random", STEPS)
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


def test_kills_between_any_two_changes_of_files_change_nothing(place):
    """The settings, metrics, checkpoints, the best weights, the model: all is whole or redone."""
    changes = ("training.max_steps=8", "run.checkpoint_steps=2", "run.patience=9")
    place.complete("files", *changes)
    chooser = random.Random(1)
    num_kills = 0
    while num_kills < NUM_KILLS:
        # In the order of the run: from its beginning to the writing of the model.
        operation = num_kills % 8 + 1 if num_kills < 8 else chooser.randint(8, 40)
        die = die_at(operation, place.folder / "cut")
        processes = place.fork("cut", *changes, in_child=die)
        (status,) = processes.wait()
        assert status in (0, -signal.SIGKILL), processes.printed()
        num_kills += status != 0
    place.complete("cut", *changes)
    place.assert_alike("cut", "files")
    assert place.list_files("cut") == place.list_files("files")


def test_a_restart_that_was_killed_can_be_restarted(place):
    place.complete("again", "training.max_steps=4", "run.checkpoint_steps=1")
    expected = place.list_files("again")
    for operation in range(2, 14, 2):
        die = die_at(operation, place.folder / "again")
        processes = place.fork("again", "training.max_steps=4", in_child=die, options=["--restart"])
        assert processes.wait() == [-signal.SIGKILL], processes.printed()
    place.complete("again", "training.max_steps=4", "run.checkpoint_steps=1", options=["--restart"])
    assert place.list_files("again") == expected


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_after_a_step_with_a_checkpoint(place, whole, number):
    run = number.name
    processes = place.fork(run, STEPS, "run.checkpoint_steps=1000")
    place.wait_for_step(run, 3)
    processes.kill(number=number)
    assert processes.wait() == [128 + number], processes.printed()
    (saved,) = place.checkpoints(run)
    assert place.last_step(run) == saved
    told = f"elmore: stopped after step {saved}; the same command goes on from there\n"
    assert processes.printed().endswith(told)
    place.complete(run, STEPS)
    place.assert_alike(run, whole)


def test_a_signal_in_the_last_measurements_stops_too(place, whole):
    """Nothing is lost, and the user is told the same."""

    def stop_there(rank):
        name = "elmore.pretrain.finish.compare_starts"
        pytest.MonkeyPatch().setattr(name, lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))

    processes = place.fork("late", STEPS, in_child=stop_there)
    assert processes.wait() == [128 + signal.SIGTERM], processes.printed()
    assert "stopped after step 60; the same command goes on from there" in processes.printed()
    place.complete("late", STEPS)
    place.assert_alike("late", whole)


def test_a_signal_at_the_last_step_is_not_forgotten(place, whole):
    def stop_there(rank):
        def signal_at_the_end(self, step):
            if step == 60:
                os.kill(os.getpid(), signal.SIGTERM)

        name = "elmore.cli.training_display.TrainingDisplay.on_checkpoint"
        pytest.MonkeyPatch().setattr(name, signal_at_the_end)

    processes = place.fork("last", STEPS, in_child=stop_there)
    assert processes.wait() == [128 + signal.SIGTERM], processes.printed()
    assert not (place.folder / "last" / "model").exists()
    place.complete("last", STEPS)
    place.assert_alike("last", whole)


def test_the_command_as_users_start_it(place, whole):
    """With an import of its own: killed, then asked to stop, then left to its end."""
    arguments = place.arguments("cold", STEPS, "run.checkpoint_steps=2")
    with command("elmore", *arguments) as process:
        place.wait_for_step("cold", 5)
        process.kill()
        assert finish(process)[0] == -signal.SIGKILL
    step = place.last_step("cold")
    with command("elmore", *arguments) as process:
        place.wait_for_step("cold", step + 3)
        process.terminate()
        status, told = finish(process)
    assert status == 128 + signal.SIGTERM
    assert "going on from step" in told
    assert "the same command goes on from there" in told.splitlines()[-1]
    place.complete("cold", STEPS)
    place.assert_alike("cold", whole)
