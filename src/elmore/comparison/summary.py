"""Means and standard deviations over seeds, and the gain from ELMo.

A gain is judged by the paired differences between runs with the same seed, which also use the same
sample of the training data. The interval covers variation over seeds only, not over test data.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from elmore.comparison.results import WITHOUT, Comparison, RunResult

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


class Verdict(StrEnum):
    """What can be concluded about a difference."""

    GAIN = "gain"
    """The interval is above 0."""
    LOSS = "loss"
    """The interval is below 0."""
    UNCLEAR = "unclear"
    """The interval contains 0."""
    UNKNOWN = "one seed"
    """The variants have fewer than two seeds in common."""
    NEITHER = "neither learned"
    """Neither beats a constant prediction, so they cannot be compared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gain:
    """A variant compared with the baseline without ELMo, at the same share."""

    points: float
    """The difference of the means."""
    error_share: float | None
    """The relative reduction of the baseline's errors; None if it made none."""
    num_pairs: int
    """Seeds that both have; the numbers below are over these."""
    paired_mean: float | None
    paired_deviation: float | None
    interval: tuple[float, float] | None
    """95 % confidence interval of the difference, by Student's t."""
    has_learned: bool
    """Whether either of the two beats a constant prediction."""

    @property
    def verdict(self) -> Verdict:
        """Compare the interval with 0."""
        if not self.has_learned:
            return Verdict.NEITHER
        if self.interval is None:
            return Verdict.UNKNOWN
        low, high = self.interval
        # If some seeds have no pair, the paired mean may differ in sign from the overall means.
        if low > 0 and self.points > 0:
            return Verdict.GAIN
        return Verdict.LOSS if high < 0 and self.points < 0 else Verdict.UNCLEAR


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A variant at a share of the training data, over seeds."""

    variant: str
    share: float
    num_train: int
    mean: float
    deviation: float | None
    """Sample standard deviation (n - 1); None for one seed."""
    num_seeds: int
    dev_mean: float
    has_learned: bool
    """Whether any run beats a constant prediction; True if unknown."""
    constant_score: float | None
    """The score of a constant prediction."""
    gain: Gain | None
    """None for the variant without ELMo, and if that was not trained."""


def summarize(comparison: Comparison) -> list[Cell]:
    """Return a cell per variant and share with runs, in the order of the report."""
    return [
        _make_cell(comparison, variant, share)
        for variant in comparison.variants
        for share in comparison.shares
        if comparison.find_runs(variant, share)
    ]


def _make_cell(comparison: Comparison, variant: str, share: float) -> Cell:
    runs = comparison.find_runs(variant, share)
    scores = [comparison.score_of(run) for run in runs]
    return Cell(
        variant=variant,
        share=share,
        num_train=runs[0].num_train,
        mean=statistics.fmean(scores),
        deviation=find_deviation(scores),
        num_seeds=len(runs),
        dev_mean=statistics.fmean(run.scores["dev"][comparison.main_score] for run in runs),
        has_learned=_has_learned(comparison, runs),
        constant_score=runs[0].constant_scores.get(comparison.part),
        gain=_find_gain(comparison, variant, share),
    )


def _has_learned(comparison: Comparison, runs: list[RunResult]) -> bool:
    return any(comparison.has_learned(run) is not False for run in runs)


def _find_gain(comparison: Comparison, variant: str, share: float) -> Gain | None:
    runs = {name: comparison.find_runs(name, share) for name in (variant, WITHOUT)}
    scores, baselines = (
        {run.seed: comparison.score_of(run) for run in runs[name]} for name in (variant, WITHOUT)
    )
    if variant == WITHOUT or not baselines:
        return None
    has_learned = any(_has_learned(comparison, each) for each in runs.values())
    baseline = statistics.fmean(baselines.values())
    points = statistics.fmean(scores.values()) - baseline
    pairs = [score - baselines[seed] for seed, score in scores.items() if seed in baselines]
    return Gain(
        points=points,
        error_share=points / (100 - baseline) if baseline < 100 else None,
        num_pairs=len(pairs),
        paired_mean=statistics.fmean(pairs) if pairs else None,
        paired_deviation=find_deviation(pairs),
        # The scores of constant predictions are equal, or differ only by the label predicted.
        interval=find_interval(pairs) if has_learned else None,
        has_learned=has_learned,
    )


def find_deviation(values: list[float]) -> float | None:
    """Return the sample standard deviation; None for a single value."""
    return statistics.stdev(values) if len(values) > 1 else None


def find_full_share(cells: list[Cell]) -> float:
    """Return the largest share that has a gain, or the largest share if none has."""
    return max([cell.share for cell in cells if cell.gain] or [cell.share for cell in cells])


def find_best(cells: list[Cell]) -> Cell | None:
    """Return the variant that the finding is about: the best on dev at the full share.

    Not the best on test: selecting by the reported score would bias it upwards. Variants with fewer
    seeds than others are not considered.
    """
    full = find_full_share(cells)
    rivals = [cell for cell in cells if cell.share == full and cell.variant != WITHOUT]
    most = max((cell.num_seeds for cell in rivals), default=0)
    known = [cell for cell in rivals if cell.num_seeds == most]
    return max(known, key=lambda cell: cell.dev_mean, default=None)
