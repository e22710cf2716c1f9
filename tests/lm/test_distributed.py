"""Processes that train together give what one gives, and survive the loss of one of them."""

import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from torch import nn

from elmore.corpus.corpus import open_corpus
from elmore.corpus.sample import sample_stretches
from elmore.jobs import checkpoint as checkpoint_module
from elmore.jobs.checkpoint import save_tensors
from elmore.lm import run as run_module
from elmore.lm.gradient_sum import divide
from elmore.lm.metrics import MetricsLog
from elmore.lm.objective import Objective
from elmore.lm.perplexity import measure_losses
from elmore.lm.rest_state import STRENGTHS
from elmore.lm.trainer import Trainer
from tests.lm.processes import Place, command, find_port, finish, needs_fork
from tests.lm.runs import assert_same_bits, last_tensors

pytestmark = needs_fork

# Numbers of processes by case; the first is what the others are compared with.
SIZES = {"sampled": (1, 2, 4), "full": (1, 4), "usual": (1, 2), "muon": (1, 4)}
CASES = {
    "sampled": (),
    "full": (
        "softmax.kind=full",
        "optimizer.name=adamw",
        "optimizer.learning_rate=0.01",
        "optimizer.weight_decay=0.1",
        "training.accumulation=2",
        "model.words.embedding_dim=3",
    ),
    "usual": ("optimizer.name=adamw", "optimizer.learning_rate=0.01", "optimizer.final_share=0.1"),
    "muon": (
        "optimizer.name=muon",
        "optimizer.learning_rate=0.01",
        "optimizer.muon_min_side=2",
        "optimizer.weight_decay=0.1",
    ),
}
# Sums in another order differ in the last bits, and what is learned from them a little more.
MOST_OFF = 2e-6
# Muon lifts directions that are nearly absent from a gradient a thousandfold, rounding errors too.
MOST_WEIGHTS_OFF = {"muon": 1e-4}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place.make(tmp_path_factory.mktemp("together"))


@pytest.fixture(scope="module")
def runs(place):
    """The names of undisturbed runs by case and number of processes."""
    names = {(case, size): f"{case}{size}" for case in CASES for size in SIZES[case]}
    for (case, size), name in names.items():
        place.complete(name, *CASES[case], size=size)
    return names


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "size"), [(case, size) for case, sizes in SIZES.items() for size in sizes[1:]]
)
def test_processes_together_give_the_curve_of_one(place, runs, case, size):
    expected, found = (place.lines(runs[case, number]) for number in (1, size))
    assert [line["kind"] for line in found] == [line["kind"] for line in expected]
    for ours, one in zip(found, expected, strict=True):
        for name in one.keys() - {"kind", "reason", "seconds", "tokens_per_second"}:
            assert ours[name] == pytest.approx(one[name], rel=MOST_OFF), (name, one["step"])
    tensors = last_tensors(place.folder / runs[case, size])
    for name, tensor in last_tensors(place.folder / runs[case, 1]).items():
        off = MOST_WEIGHTS_OFF.get(case, 1e-5)
        torch.testing.assert_close(tensors[name], tensor, atol=off, rtol=off, msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["sampled", "usual"])
def test_gradients_in_bf16_give_nearly_the_same_curve_and_always_the_same_bits(place, runs, case):
    changes = (*CASES[case], "training.gradients=bf16")
    for name in (f"{case}-bf16", f"{case}-bf16-again"):
        place.complete(name, *changes, size=2)
    place.assert_alike(f"{case}-bf16-again", f"{case}-bf16")
    losses, exact = (
        [line["loss"] for line in place.lines(name) if "loss" in line]
        for name in (f"{case}-bf16", runs[case, 2])
    )
    assert losses != exact
    assert losses == pytest.approx(exact, rel=5e-3)


@pytest.mark.slow
def test_held_out_text_is_divided_among_the_processes(place):
    """Each document is measured by one of them."""

    def count(rank):
        def measure(*parts, documents, **options):
            with (place.folder / f"measured-{rank}").open("a") as file:
                file.write(f"{len(documents)}\n")
            return measure_losses(*parts, documents=documents, **options)

        patch(run_module, "measure_losses", measure)

    place.complete("divided", "training.max_steps=1", size=2, in_child=count)
    counts = [
        [int(line) for line in (place.folder / f"measured-{rank}").read_text().split()]
        for rank in range(2)
    ]
    heldout = open_corpus(place.folder / "corpus").heldout
    assert heldout.num_documents > 2
    # While training, to choose a rest state (which also reads stretches), and at the end.
    num_choosing = heldout.num_documents + len(sample_stretches(heldout, max_tokens=10_000))
    assert [sum(both) for both in zip(*counts, strict=True)] == [
        heldout.num_documents,
        *[num_choosing] * len(STRENGTHS),
        *[heldout.num_documents] * 3,
    ]
    assert all(abs(first - second) <= 1 for first, second in zip(*counts, strict=True))


@pytest.mark.slow
def test_stopped_processes_resume_to_the_same_bits_and_other_numbers_to_nearly_the_same(
    place, runs
):
    """One process gets the signal and all stop; the same or another number of them resumes."""

    def stop(rank):
        if rank == 2:
            at_step(6, lambda: os.kill(os.getpid(), signal.SIGTERM))

    with place.forked("four", size=4, in_child=stop) as processes:
        assert processes.wait() == [128 + signal.SIGTERM] * 4, processes.printed()
        assert (
            processes.printed().count(
                "elmore: stopped after step 7; rerun the same command to resume"
            )
            == 1
        )
    shutil.copytree(place.folder / "four", place.folder / "one")
    place.complete("four", size=4)
    place.assert_alike("four", runs["sampled", 4])
    place.complete("one")
    expected = last_tensors(place.folder / runs["sampled", 1])
    for name, tensor in last_tensors(place.folder / "one").items():
        torch.testing.assert_close(tensor, expected[name], atol=1e-5, rtol=1e-5, msg=name)


def patch(target, name, value) -> None:
    """Change something in a fork, for good."""
    pytest.MonkeyPatch().setattr(target, name, value)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at_step(number, action) -> None:
    """Do something at the beginning of a step, counted from 1."""
    compute = Objective.compute

    def compute_or_act(self, *arguments, step, **options):
        if step + 1 == number:
            action()
        return compute(self, *arguments, step=step, **options)

    patch(Objective, "compute", compute_or_act)


def die_in_the_last_exchange_of_step_7() -> None:
    gather = Trainer._gather

    def gather_or_die(self, state):
        if self.num_done == 6:
            die()
        return gather(self, state)

    patch(Trainer, "_gather", gather_or_die)


def die_before_the_line_of_step_6() -> None:
    write = MetricsLog.write

    def write_or_die(self, kind, /, *, step, **numbers):
        if step == 6:
            die()
        write(self, kind, step=step, **numbers)

    patch(MetricsLog, "write", write_or_die)


def die_in_the_second_measurement() -> None:
    num_done = 0

    def measure_or_die(*parts, **options):
        nonlocal num_done
        num_done += 1
        if num_done == 2:
            die()
        return measure_losses(*parts, **options)

    patch(run_module, "measure_losses", measure_or_die)


def die_with_half_a_checkpoint() -> None:
    def write_half(path, tensors):
        save_tensors(path, tensors)
        path.write_bytes(path.read_bytes()[:1000])
        die()

    patch(checkpoint_module, "save_tensors", write_half)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lost", "how", "saved"),
    [
        (1, lambda: at_step(7, die), 6),
        (1, die_in_the_last_exchange_of_step_7, 6),
        (0, die_before_the_line_of_step_6, 6),
        (1, die_in_the_second_measurement, 8),
        (0, die_with_half_a_checkpoint, 5),
    ],
    ids=["computing", "exchanging", "logging", "measuring", "saving"],
)
def test_when_a_process_is_lost_the_other_saves_the_last_step(
    place, runs, request, lost, how, saved
):
    name = f"lost-{request.node.callspec.id}"
    changes = ("run.checkpoint_steps=1000",) if saved != 5 else ()
    hurt = lambda rank: how() if rank == lost else None  # noqa: E731
    with place.forked(name, *changes, size=2, in_child=hurt) as processes:
        statuses = processes.wait()
        assert statuses[lost] == -signal.SIGKILL
        assert statuses[1 - lost] == 2
        message = f"was lost (checkpoint at step {saved}); rerun the same command"
        assert processes.printed().count(message) == 1
        assert "Traceback" not in processes.printed()
    assert place.checkpoints(name) == [saved]
    place.complete(name, size=2)
    place.assert_alike(name, runs["sampled", 2])


def refuse(place, run, *changes, **options):
    """Start two processes that cannot train; return what they print."""
    with place.forked(run, *changes, size=2, **options) as processes:
        assert processes.wait() == [2, 2], processes.printed()
        printed = processes.printed()
    assert printed.count("elmore: ") == 1, printed
    assert "Traceback" not in printed
    assert not (place.folder / run / "settings.json").exists()
    return printed


@pytest.mark.slow
def test_a_mistake_is_reported_once(place):
    """By the first process, whichever of them made it; and before anything is written."""
    message = refuse(place, "uneven", "training.rows=7")
    assert "training.rows = 7 cannot be divided evenly among 2 processes" in message
    assert "does not exist; make a corpus" in refuse(place, "missing", corpus="elsewhere")

    def change(setting):
        return lambda rank: sys.argv.extend(["--set", setting] if rank == 1 else [])

    message = refuse(place, "unlike", in_child=change("training.seed=2"))
    assert "process 1 of 2: its configuration differs from that of the first process" in message

    def lose_corpus(rank):
        if rank == 1:
            sys.argv[sys.argv.index("--corpus") + 1] = str(place.folder / "not-there")

    message = refuse(place, "half", in_child=lose_corpus)
    assert "process 1 of 2: " in message
    assert "does not exist" in message


@pytest.mark.slow
def test_processes_share_the_check_of_the_corpus_and_stop_together(place):
    """Each reads every other shard; damage that one finds ends both before anything is written."""
    shutil.copytree(place.folder / "corpus", place.folder / "damaged")
    for number in (0, 1):
        shard = place.folder / "damaged" / "shards" / f"{number:08d}.safetensors"
        whole = shard.read_bytes()
        shard.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        message = refuse(place, f"damaged-{number}", corpus="damaged")
        assert f"{'process 1 of 2: ' if number else ''}{shard} is damaged" in message
        shard.write_bytes(whole)


@pytest.mark.slow
def test_only_the_first_process_needs_the_folder_of_the_run(place, runs):
    """As on machines without a common disk."""

    def lose_folder(rank):
        if rank == 1:
            sys.argv[sys.argv.index("--out") + 1] = str(place.folder / "other-disk")

    few = "training.max_steps=5"
    for changes in ((few,), ()):
        place.complete("own-disk", *changes, size=2, in_child=lose_folder)
    expected = last_tensors(place.folder / runs["sampled", 2])
    assert_same_bits(last_tensors(place.folder / "own-disk"), expected)
    assert not (place.folder / "other-disk").exists()


def test_gradients_are_sent_in_portions_that_are_large_enough():
    weights = [nn.Parameter(torch.zeros(number)) for number in (1, 2, 3, 4)]
    portions = divide(weights, portion_bytes=12)
    assert [[len(weight) for weight in portion] for portion in portions] == [[1, 2], [3], [4]]


# Torchrun itself.

LONG = ("training.max_steps=30", "run.heldout_steps=20", "run.checkpoint_steps=1000")


def torchrun(place, run, *options):
    launcher = ["torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "3"]
    port = ["--master-port", str(find_port())]
    return command(*launcher, *port, "-m", "elmore", *place.arguments(run, *LONG), *options)


def find_worker(launcher, rank) -> int:
    """The process of a rank that a torchrun has started."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                facts = (folder / "stat").read_text().rpartition(")")[2].split()
                environment = (folder / "environ").read_bytes().split(b"\0")
                if int(facts[1]) == launcher.pid and f"RANK={rank}".encode() in environment:
                    return int(folder.name)
    pytest.fail(f"torchrun has no worker of rank {rank}")


@pytest.fixture(scope="module")
def long(place):
    place.complete("long", *LONG, size=2)
    return "long"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes cannot be found")
def test_torchrun_replaces_a_lost_process_and_the_run_resumes(place, long):
    """Even the first one; restarted processes resume although the command says --restart."""
    with torchrun(place, "restarted", "--restart") as launcher:
        place.wait_for_step("restarted", 3)
        os.kill(find_worker(launcher, 0), signal.SIGKILL)
        status, printed = finish(launcher)
    assert status == 0, printed
    assert printed.count("resuming at step") == 1
    place.assert_alike("restarted", long)


@pytest.mark.slow
def test_torchrun_asked_to_stop_leaves_a_checkpoint(place, long):
    with torchrun(place, "stopped") as launcher:
        place.wait_for_step("stopped", 3)
        launcher.terminate()
        status, printed = finish(launcher)
    assert status != 0
    (saved,) = place.checkpoints("stopped")
    assert (
        printed.count(f"elmore: stopped after step {saved}; rerun the same command to resume") == 1
    )
    place.complete("stopped", *LONG, size=2)
    place.assert_alike("stopped", long)
