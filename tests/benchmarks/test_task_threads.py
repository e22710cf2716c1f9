"""The measurement of threads trains every kind that it names."""

import pytest

from benchmarks.task_threads import KINDS, SETTINGS, make_examples, measure_steps


@pytest.mark.parametrize("kind", KINDS)
def test_examples_of_every_kind_are_as_many_as_asked_for(kind):
    examples, _ = make_examples(kind, number=3)
    assert len(examples) == 3


def test_a_network_is_trained():
    assert measure_steps("entities", num_threads=None, seconds=0.0) > 0


def test_the_chosen_setting_is_measured():
    assert SETTINGS["1 thread"] == ({}, 1)
