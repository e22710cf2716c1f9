"""Ratios as all scores here define them: 0 of 0 is 0."""


def divide(part: float, whole: float) -> float:
    """Return a share from 0 to 1; 0 if the whole is 0, as in the shared tasks' programs.

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


# Smaller differences between scores are rounding errors.
_ROUNDING = 1e-6


def is_above_constant(score: float, constant: float | None) -> bool | None:
    """Return whether a score in percent beats a constant prediction; None if that is unknown."""
    return None if constant is None else score > constant + _ROUNDING
