import pytest

from elmore.comparison.students_t import find_interval, t_quantile


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
