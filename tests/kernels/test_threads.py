"""Many callers at once, processes that fork, calls that fail, a long life: nothing is shared."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event, get_ident

import numpy as np
import pytest
import torch

from elmore.embed.embedder import Embedder
from elmore.kernels import reading, threads
from elmore.kernels.threads import count_threads, for_native_calls, run_together, split_evenly
from tests import tiny
from tests.kernels import lstms, variants
from tests.kernels.lstms import Case
from tests.kernels.processes import run_python
from tests.lm.processes import needs_fork

NUM_CALLERS = 8


@pytest.fixture(params=variants.ALL, scope="module")
def variant(request):
    with variants.using(request.param) as name:
        yield name


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setattr(reading, "MIN_TEAM_BYTES", 0)  # small weights, and still a team
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def call_at_once(work):
    """Return what `work(caller)` gives to callers that all begin at the same moment."""
    barrier = Barrier(NUM_CALLERS)

    def call(caller):
        barrier.wait()
        return work(caller)

    with ThreadPoolExecutor(NUM_CALLERS) as pool:
        return list(pool.map(call, range(NUM_CALLERS)))


def test_threads_can_be_left_to_native_calls(two_threads):
    with for_native_calls():
        assert (torch.get_num_threads(), count_threads(), len(split_evenly(10))) == (1, 2, 2)
        with for_native_calls():
            assert count_threads() == 2
        assert (torch.get_num_threads(), count_threads()) == (1, 2)
        with ThreadPoolExecutor(1) as pool:  # other threads are not concerned
            assert (
                pool.submit(count_threads).result() == pool.submit(torch.get_num_threads).result()
            )
    assert torch.get_num_threads() == count_threads() == 2


@needs_fork
@pytest.mark.slow
def test_a_child_forked_meanwhile_has_one_thread(two_threads):
    with for_native_calls():
        child = os.fork()
        if not child:
            try:
                with for_native_calls():
                    counts = {torch.get_num_threads(), count_threads()}
                os._exit(0 if counts == {1} else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
    assert torch.get_num_threads() == count_threads() == 2


@pytest.mark.slow
def test_many_callers_of_one_network_get_the_bits_of_one(variant, two_threads):
    cases = [
        Case(lengths=lengths, output_dim=17, cell_dim=33)
        for lengths in [(9,), (3, 5), (4, 4, 2, 1, 1), tuple(range(1, 20))]
    ]
    bilm = cases[0].build()
    wanted = [lstms.read(bilm, case).layers for case in cases]
    fresh = cases[0].build()  # so that all callers find nothing packed yet

    def read_often(caller):
        return [
            torch.equal(lstms.read(fresh, cases[n % 4]).layers, wanted[n % 4])
            for n in range(caller, caller + 20)
        ]

    assert all(all(results) for results in call_at_once(read_often))


@pytest.mark.slow
def test_many_callers_of_one_embedder_get_the_bits_of_one(variant, two_threads):
    model = tiny.model()
    sentences = [[f"w{n % 5}", "bank"] * (n % 4 + 1) for n in range(24)]
    wanted = Embedder(model).embed(sentences, layers="all")
    embedder = Embedder(tiny.model(), tokens_per_batch=30)

    def embed(caller):
        return embedder.embed(sentences[caller:], layers="all")

    for caller, found in enumerate(call_at_once(embed)):
        for ours, theirs in zip(found, wanted[caller:], strict=True):
            assert np.array_equal(ours, theirs)


@pytest.mark.slow
def test_callers_that_train_at_once_get_the_gradients_of_one(variant, two_threads):
    case = Case(lengths=(4, 2, 3), output_dim=17, cell_dim=33)

    def train(caller):
        bilm = case.build()
        tokens = case.tokens().requires_grad_()
        bilm.contextualize(tokens, torch.tensor(case.lengths)).layers.square().sum().backward()
        return tokens.grad

    wanted = train(0)
    for found in call_at_once(train):
        torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-6)


# A call that fails.


def fail():
    raise MemoryError("no room")


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_in_one_call_is_raised_when_all_are_done(two_threads, failing):
    done = []
    calls = [lambda number=number: done.append(number) for number in range(3)]
    calls[failing] = fail
    with pytest.raises(MemoryError, match="no room"):
        run_together(*calls)
    assert sorted(done) == [number for number in range(3) if number != failing]
    run_together(*(lambda number=number: done.append(number) for number in range(3)))
    assert len(done) == 5


def test_calls_that_no_thread_has_started_run_in_the_caller(two_threads):
    """As on a machine whose cores are busy: the caller does not wait for threads to wake up."""
    is_free = Event()
    occupied = [threads._find_helper(number).start(is_free.wait, beside=None) for number in (0, 1)]
    try:
        ran_in = []
        run_together(*(lambda: ran_in.append(get_ident()) for _ in range(3)))
        assert ran_in == [get_ident()] * 3
    finally:
        is_free.set()
    assert all(future.result() for future in occupied)


def test_several_callers_do_not_wait_for_the_helpers_of_one(two_threads):
    """The second caller finds them taken, and uses other threads."""
    is_free, is_inside = Event(), Event()

    def occupy():
        is_inside.set()
        assert is_free.wait(20)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(run_together, occupy, lambda: None)
        assert is_inside.wait(20)
        done = []
        run_together(lambda: done.append(1), lambda: done.append(2))
        assert sorted(done) == [1, 2]
        is_free.set()
        other.result()


def test_an_error_in_one_direction_reaches_the_caller(two_threads, monkeypatch):
    """A direction whose weights were taken away fails; the next call works."""
    with variants.using("avx2"):
        case = Case(lengths=(3, 2, 2, 1, 1))
        bilm = case.build()
        wanted = lstms.read(bilm, case).layers
        with monkeypatch.context() as broken:
            reader = bilm._packed[1]
            broken.setattr(reader, "_structs", {0: reader._structs[0]})
            with pytest.raises(KeyError):
                lstms.read(bilm, case)
        assert torch.equal(lstms.read(bilm, case).layers, wanted)


def test_rows_are_divided_without_gap_or_overlap():
    before = torch.get_num_threads()
    try:
        for num_threads in (1, 3, 4):
            torch.set_num_threads(num_threads)
            for number in (0, 1, 2, 3, 100):
                parts = split_evenly(number)
                covered = [row for part in parts for row in range(part.start, part.stop)]
                assert covered == list(range(number))
                assert len(parts) == min(num_threads, number)
    finally:
        torch.set_num_threads(before)


# Whole programs.

FORK = """
import multiprocessing, os, sys, warnings
import torch
from elmore.kernels import reading
from tests.kernels import lstms
from tests.kernels.lstms import Case

reading.MIN_TEAM_BYTES = 0
warnings.simplefilter("ignore")  # of forking with threads, which is the point here
torch.set_num_threads(2)
cases = [Case(lengths=(5, 3, 2, 1, 1, 1), output_dim=17, cell_dim=33), Case(lengths=(4,))]
bilms = [case.build() for case in cases]
wanted = [lstms.read(bilm, case).layers for bilm, case in zip(bilms, cases)]

def is_same(place):
    with torch.enable_grad():
        trained = bilms[place].contextualize(
            cases[place].tokens(), torch.tensor(cases[place].lengths), cases[place].state()
        )
        trained.layers.sum().backward()
    return all(
        torch.equal(layers, wanted[place])
        for layers in (lstms.read(bilms[place], cases[place]).layers, trained.layers.detach())
    )

def is_read_alike(place):
    return torch.equal(lstms.read(bilms[place], cases[place]).layers, wanted[place])

# A child that wants threads again gets its own, not those of its parent.
child = os.fork()
if child == 0:
    torch.set_num_threads(2)
    os._exit(0 if is_read_alike(0) and is_read_alike(1) else 1)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, "the child of a fork"

# One that does not may also train, though its parent did so with all threads.
assert is_same(0) and is_same(1), "the parent"
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(is_same, [0, 1] * 4) == [True] * 8
assert is_same(0) and is_same(1), "the parent again"
print("same")
"""


@pytest.mark.slow
@variants.not_sanitized
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("choice", ["avx2", "torch"])
def test_a_forked_process_computes_the_same(choice):
    with variants.using(choice):
        result = run_python(FORK, ELMORE_KERNEL=choice)
    assert (result.stdout, result.returncode) == ("same\n", 0), result.stderr


LIFE = """
import resource, sys
import torch
from pathlib import Path
from elmore.kernels import reading
from elmore.model.packed_bilm import freeze
from tests.kernels import lstms
from tests.kernels.lstms import Case

reading.MIN_TEAM_BYTES = 0
torch.set_num_threads(2)
case = Case(lengths=(2, 1, 1, 1, 1))
single = Case(lengths=(2,))
bilm = case.build()
packed = freeze(bilm)
inputs = [(c.tokens(), torch.tensor(c.lengths)) for c in (case, single)]

def live(number):
    for n in range(number):
        with torch.no_grad():
            bilm.contextualize(*inputs[n % 2])
            packed.contextualize(*inputs[n % 2])
        if n % 50 == 0:  # train, and pack again
            bilm.contextualize(*inputs[n % 2]).layers.sum().backward()
            bilm.forward_lm[0].bias.data.add_(1e-3)
            bilm.zero_grad()

def memory():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()

live(300)
before = memory()
live(1000)
torch.set_num_threads(1)
live(4000)
print((memory() - before) / 2**20)
"""


@pytest.mark.slow
@variants.not_sanitized
@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="this system does not tell a process its memory"
)
def test_ten_thousand_calls_leave_nothing_behind():
    """A leak of the smallest buffer of a call would take more than 10 MB."""
    with variants.using("avx2"):
        result = run_python(LIFE, ELMORE_KERNEL="avx2")
    assert result.returncode == 0, result.stderr
    assert float(result.stdout) < 4, "MB more than before"
