import pytest

from elmore.comparison.sample_efficiency import find_needs
from elmore.comparison.summary import summarize
from tests.comparison.made_up import make_comparison, make_run


def make_line(variant, scores):
    return [make_run(variant, share=share, test=score) for share, score in scores.items()]


BASELINE = make_line("without", {0.1: 60.0, 1.0: 80.0})


def find_need(scores):
    (need,) = find_needs(summarize(make_comparison(BASELINE + make_line("input", scores))))
    return need


@pytest.mark.parametrize(
    ("scores", "num_train", "is_bound"),
    [
        # Half way from 100 to 1000 on a log axis: 100 * sqrt(10).
        ({0.1: 70.0, 1.0: 90.0}, 316, False),
        ({0.01: 50.0, 0.1: 78.0, 1.0: 90.0}, 147, False),  # 100 * 10 ** (2 / 12)
        ({0.1: 70.0, 1.0: 80.0}, 1000, False),
        ({0.1: 80.0, 1.0: 90.0}, 100, True),
        ({0.1: 70.0, 1.0: 79.0}, None, False),
        # The first time counts.
        ({0.01: 70.0, 0.1: 85.0, 0.5: 79.0, 1.0: 85.0}, 46, False),  # 10 * 10 ** (2 / 3)
    ],
)
def test_examples_needed_by_hand(scores, num_train, is_bound):
    need = find_need(scores)
    assert (need.variant, need.target, need.baseline_num_train) == ("input", 80.0, 1000)
    assert (need.num_train, need.is_bound) == (num_train, is_bound)


def test_one_share_or_no_baseline_gives_no_need():
    runs = BASELINE + make_line("input", {1.0: 90.0})
    assert find_needs(summarize(make_comparison(runs))) == []
    runs = make_line("input", {0.1: 70.0, 1.0: 90.0})
    assert find_needs(summarize(make_comparison(runs))) == []
