"""Confidence intervals of a mean by Student's t, without a library."""

import math
import statistics
from collections.abc import Sequence

# The 97.5 % quantiles for 1 to 10 degrees of freedom.
_FEW = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281)


def t_quantile(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t, to three decimals.

    >>> round(t_quantile(2), 3), round(t_quantile(30), 3)
    (4.303, 2.042)
    """
    if degrees <= len(_FEW):
        return _FEW[degrees - 1]
    # Abramowitz and Stegun (1964), 26.7.5: the normal quantile with three corrections.
    z = statistics.NormalDist().inv_cdf(0.975)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3


def find_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of the mean; None for a single value."""
    if len(values) < 2:
        return None
    mean = statistics.fmean(values)
    reach = t_quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return mean - reach, mean + reach
