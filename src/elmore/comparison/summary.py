"""Means and deviations over seeds, and what ELMo gains.

A gain is judged by the differences between runs of the same seed, which for a part of the training
data also read the same part. The interval is about seeds alone: other test data would move it too.
"""

import statistics
from dataclasses import dataclass
from enum import StrEnum

from elmore.comparison.results import WITHOUT, Comparison, RunResult
from elmore.comparison.students_t import find_interval


class Verdict(StrEnum):
    """What the seeds say of a difference."""

    GAIN = "gain"
    """The interval is above 0."""
    LOSS = "loss"
    """The interval is below 0."""
    UNCLEAR = "unclear"
    """The interval has 0 in it."""
    UNKNOWN = "one seed"
    """There are no two seeds that both variants have."""
    NEITHER = "neither learned"
    """Neither scores better than one prediction for everything, so they cannot be compared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gain:
    """A variant against the one without ELMo, with as many examples."""

    points: float
    """The difference of the means."""
    error_share: float | None
    """The part of the baseline's errors that is gone; None if it made none."""
    num_pairs: int
    """Seeds that both have; the numbers below are of those."""
    paired_mean: float | None
    paired_deviation: float | None
    interval: tuple[float, float] | None
    """Where the difference lies with 95 % confidence, by Student's t."""
    has_learned: bool
    """Whether either of the two scores better than one prediction for everything."""

    @property
    def verdict(self) -> Verdict:
        """Compare the interval with 0."""
        if not self.has_learned:
            return Verdict.NEITHER
        if self.interval is None:
            return Verdict.UNKNOWN
        low, high = self.interval
        # Where not all seeds are in pairs, the pairs may differ from the means in their sign.
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
    """Of a sample, n - 1; None for one seed."""
    num_seeds: int
    dev_mean: float
    has_learned: bool
    """Whether a run scores better than one prediction for everything; if not known, it is so."""
    constant_score: float | None
    """What such a prediction scores."""
    gain: Gain | None
    """None for the variant without ELMo, and where that was not trained."""


def summarize(comparison: Comparison) -> list[Cell]:
    """Return a cell for each variant and share that has runs, in the order of the report."""
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
        # Scores of networks that predict one label differ by nothing, or by which label it is.
        interval=find_interval(pairs) if has_learned else None,
        has_learned=has_learned,
    )


def find_deviation(values: list[float]) -> float | None:
    """Return the sample's standard deviation; one value has none."""
    return statistics.stdev(values) if len(values) > 1 else None


def find_full_share(cells: list[Cell]) -> float:
    """Return the largest share at which most is compared: with a gain if any is, else any."""
    return max([cell.share for cell in cells if cell.gain] or [cell.share for cell in cells])


def find_best(cells: list[Cell]) -> Cell | None:
    """Return the use of ELMo that the finding is about: the best on dev with all examples.

    Not the best on test: to choose by the score that is reported would flatter it. Uses with fewer
    seeds than another wait until they have as many.
    """
    full = find_full_share(cells)
    rivals = [cell for cell in cells if cell.share == full and cell.variant != WITHOUT]
    most = max((cell.num_seeds for cell in rivals), default=0)
    known = [cell for cell in rivals if cell.num_seeds == most]
    return max(known, key=lambda cell: cell.dev_mean, default=None)
