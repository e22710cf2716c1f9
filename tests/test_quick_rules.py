"""The rules of `make quick` are enforced."""

import multiprocessing
import os
import subprocess
import sys

import pytest

from tests import quick_rules


@pytest.mark.parametrize(
    "start",
    [
        lambda: subprocess.run([sys.executable, "-c", ""], check=True),
        lambda: os.system("true"),
        os.fork,
        lambda: multiprocessing.get_context("spawn").Process(target=print).start(),
    ],
)
def test_a_test_without_the_mark_starts_no_process(start):
    with pytest.raises(AssertionError, match="mark the test as slow"):
        start()


@pytest.mark.slow
def test_a_test_with_the_mark_may_start_one():
    subprocess.run([sys.executable, "-c", ""], check=True)


def test_a_test_that_computes_for_long_fails():
    with (
        pytest.raises(AssertionError, match="s of CPU time; mark the test as slow"),
        quick_rules.bounded_time(max_seconds=1e-5),
    ):
        sum(range(10**6))
