import pytest

from elmore.errors import DataError
from tests.comparison.made_up import make_comparison, make_run, make_runs


def test_without_comes_first_and_the_others_as_they_come():
    runs = [make_run(name) for name in ("output", "own", "without", "input")]
    assert make_comparison(runs).variants == ["without", "output", "own", "input"]


def test_runs_are_found_by_seed_and_shares_are_sorted():
    runs = [make_run("input", share=share, seed=seed) for share in (1.0, 0.1) for seed in (2, 0)]
    comparison = make_comparison(runs)
    assert comparison.shares == [0.1, 1.0]
    assert [run.seed for run in comparison.find_runs("input", 0.1)] == [0, 2]
    assert comparison.find_runs("input", 0.5) == []


def test_all_are_compared_on_dev_if_one_was_not_scored_on_test():
    runs = make_runs("without", [80.0, 81.0])
    assert make_comparison(runs).part == "test"
    assert make_comparison(runs).score_of(runs[0]) == 80.0
    runs.append(make_run("input", scores={"dev": {"f1": 70.0}}))
    comparison = make_comparison(runs)
    assert comparison.part == "dev"
    assert [comparison.score_of(run) for run in runs] == [81.0, 82.0, 70.0]


@pytest.mark.parametrize("changes", [{"share": 0.0}, {"share": 1.5}, {"num_train": 0}])
def test_a_share_that_is_none_is_refused(changes):
    with pytest.raises(DataError, match=r"'input' has share .* expected a share above 0"):
        make_run("input", **changes)


def test_runs_that_cannot_be_compared_are_refused():
    with pytest.raises(DataError, match="has no runs"):
        make_comparison([])
    with pytest.raises(DataError, match="two runs of variant 'input', share 1, seed 0"):
        make_comparison([make_run("input"), make_run("input", test=3.0)])
    for scores, part in [({"dev": {"em": 1.0}}, "dev"), ({"test": {"f1": 1.0}}, "dev"),
                         ({"dev": {"f1": 1.0}, "test": {}}, "test")]:  # fmt: skip
        with pytest.raises(DataError, match=f"seed 0 has no 'f1' on {part}"):
            make_comparison([make_run(scores=scores)])
