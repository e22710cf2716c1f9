"""Parts of a whole as all scores here count them: of nothing, nothing is right."""


def divide(part: float, whole: float) -> float:
    """Return a share from 0 to 1; 0 if there is no whole, as the shared tasks' programs print.

    >>> divide(1, 4), divide(0, 0)
    (0.25, 0.0)
    """
    return part / whole if whole else 0.0


def f1(precision: float, recall: float) -> float:
    """Return the harmonic mean.

    >>> f1(0.5, 1.0), f1(0.0, 0.0)
    (0.6666666666666666, 0.0)
    """
    return divide(2 * precision * recall, precision + recall)


# Scores that differ by less are the same number, computed in another order.
_ROUNDING = 1e-6


def is_above_constant(score: float, constant: float | None) -> bool | None:
    """Tell whether a score in percent is above that of a constant prediction, if that is known."""
    return None if constant is None else score > constant + _ROUNDING
