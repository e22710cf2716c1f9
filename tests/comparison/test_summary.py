import pytest

from elmore.comparison.summary import (
    Verdict,
    find_best,
    find_full_share,
    find_interval,
    summarize,
    t_quantile,
)
from tests.comparison.made_up import make_comparison, make_run, make_runs

WITHOUT = make_runs("without", [80.0, 82.0, 81.0])


def find_cell(comparison, variant, share=1.0):
    (cell,) = [c for c in summarize(comparison) if (c.variant, c.share) == (variant, share)]
    return cell


def test_means_and_deviations_by_hand():
    cell = find_cell(make_comparison(WITHOUT), "without")
    assert (cell.mean, cell.deviation, cell.num_seeds) == (81.0, pytest.approx(1.0), 3)
    assert (cell.dev_mean, cell.num_train, cell.gain) == (82.0, 1000, None)


def test_a_gain_by_hand():
    gain = find_cell(
        make_comparison([*WITHOUT, *make_runs("input", [84.0, 85.0, 86.0])]), "input"
    ).gain
    assert gain.points == pytest.approx(4.0)
    assert gain.error_share == pytest.approx(4 / 19)
    # By seed 4, 3 and 5.
    assert (gain.num_pairs, gain.paired_mean) == (3, pytest.approx(4.0))
    assert gain.paired_deviation == pytest.approx(1.0)
    assert gain.interval == pytest.approx((1.5158, 6.4842), abs=1e-4)
    assert gain.verdict is Verdict.GAIN


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [
        ([81.0, 80.0, 84.0], Verdict.UNCLEAR),
        ([80.0, 82.0, 81.0], Verdict.UNCLEAR),
        ([70.0, 72.0, 71.0], Verdict.LOSS),
        ([99.0], Verdict.UNKNOWN),
    ],
)
def test_only_a_gain_beyond_the_seeds_is_called_one(scores, verdict):
    comparison = make_comparison([*WITHOUT, *make_runs("input", scores)])
    assert find_cell(comparison, "input").gain.verdict is verdict


def test_seeds_are_paired_by_their_number_and_not_by_their_place():
    runs = [make_run("input", seed=seed, test=score) for seed, score in [(7, 99.0), (2, 84.0)]]
    gain = find_cell(make_comparison([*runs, *WITHOUT]), "input").gain
    assert gain.points == pytest.approx((99 + 84) / 2 - 81)
    assert (gain.num_pairs, gain.paired_mean) == (1, 3.0)
    assert (gain.paired_deviation, gain.interval) == (None, None)


def test_pairs_that_contradict_the_means_make_it_unclear():
    runs = [*make_runs("input", [81.0, 83.0]), make_run("input", seed=9, test=3.0)]
    gain = find_cell(make_comparison([*WITHOUT, *runs]), "input").gain
    assert gain.interval == (1.0, 1.0)
    assert gain.points < 0
    assert gain.verdict is Verdict.UNCLEAR


def test_a_gain_is_over_as_many_examples():
    runs = [make_run(share=0.1, test=50.0), make_run(test=80.0), make_run("input", share=0.1,
            test=60.0), make_run("input", share=0.5, test=70.0)]  # fmt: skip
    comparison = make_comparison(runs)
    assert find_cell(comparison, "input", 0.1).gain.points == 10.0
    assert find_cell(comparison, "input", 0.1).gain.error_share == 0.2
    assert find_cell(comparison, "input", 0.5).gain is None


def test_a_baseline_without_errors_leaves_none_to_remove():
    comparison = make_comparison([make_run(test=100.0), make_run("input", test=99.0)])
    gain = find_cell(comparison, "input").gain
    assert (gain.points, gain.error_share) == (-1.0, None)


def test_the_best_is_chosen_on_dev_among_the_uses_of_elmo_with_most_examples():
    runs = [
        make_run("without", test=10.0, dev=99.0),
        make_run("input", test=70.0, dev=60.0),
        make_run("output", test=60.0, dev=70.0),
        make_run("both", test=99.0, dev=99.0, share=0.1),
    ]
    cells = summarize(make_comparison(runs))
    assert find_best(cells).variant == "output"
    assert find_best(summarize(make_comparison(WITHOUT))) is None


def test_the_best_has_as_many_seeds_as_any():
    lucky = make_run("top", dev=99.0, test=99.0)
    cells = summarize(make_comparison([*WITHOUT, lucky, *make_runs("input", [82.0, 83.0])]))
    assert find_best(cells).variant == "input"


def test_the_full_share_is_the_largest_with_a_baseline():
    runs = [make_run(share=0.5), make_run("input", share=0.5), make_run("input", share=1.0)]
    assert find_full_share(summarize(make_comparison(runs))) == 0.5
    assert find_full_share(summarize(make_comparison(runs[1:]))) == 1.0


CONSTANT = {"dev": 53.0, "test": 52.0}


def make_unlearned(variant, scores, **changes):
    """Runs that score no better than one label for everything."""
    return [
        make_run(variant, seed=seed, test=score, constant_scores=CONSTANT, **changes)
        for seed, score in enumerate(scores)
    ]


@pytest.mark.parametrize("scores", [[52.0, 52.0, 52.0], [52.0, 48.0, 52.0], [40.0, 41.0, 42.0]])
def test_runs_that_predict_one_label_are_not_compared(scores):
    runs = [*make_unlearned("without", [52.0] * 3), *make_unlearned("input", scores)]
    cell = find_cell(make_comparison(runs), "input")
    assert (cell.has_learned, cell.constant_score) == (False, 52.0)
    assert cell.gain.verdict is Verdict.NEITHER
    assert cell.gain.interval is None


@pytest.mark.parametrize("learned", ["without", "input"])
def test_one_run_that_learned_is_enough_to_compare(learned):
    runs = [
        *make_unlearned("without", [52.0, 52.0 + (learned == "without"), 52.0]),
        *make_unlearned("input", [52.0, 52.0 + (learned == "input"), 52.0]),
    ]
    gain = find_cell(make_comparison(runs), "input").gain
    assert gain.verdict is Verdict.UNCLEAR
    assert gain.interval is not None


def test_runs_of_old_files_are_taken_as_learned():
    cell = find_cell(make_comparison([*WITHOUT, *make_runs("input", [80.0, 82.0, 81.0])]), "input")
    assert (cell.has_learned, cell.constant_score) == (True, None)
    assert cell.gain.interval == (0.0, 0.0)


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [
        (1, 12.706), (2, 4.303), (4, 2.776), (10, 2.228),
        (11, 2.201), (12, 2.179), (20, 2.086), (60, 2.000), (120, 1.980), (10**9, 1.960),
    ],
)  # fmt: skip
def test_quantiles_are_those_of_printed_tables(degrees, quantile):
    assert t_quantile(degrees) == pytest.approx(quantile, abs=6e-4)


def test_an_interval_by_hand():
    # Mean 4, deviation 1, so 4 ± 4.3027 / sqrt(3).
    assert find_interval([4.0, 3.0, 5.0]) == pytest.approx((1.5158, 6.4842), abs=1e-4)
    # Mean 1, deviation sqrt(2), so 1 ± 12.7062 * sqrt(2) / sqrt(2).
    assert find_interval([0.0, 2.0]) == pytest.approx((-11.7062, 13.7062))
    assert find_interval([2.0, 2.0]) == (2.0, 2.0)


def test_one_value_or_none_has_no_interval():
    assert find_interval([3.0]) is None
    assert find_interval([]) is None
