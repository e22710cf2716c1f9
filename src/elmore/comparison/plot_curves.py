"""Plot the dev score by epoch, over seeds that may have stopped at different epochs."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from elmore.comparison.drawing import (
    Plot,
    escape_formula,
    find_looks,
    label_lines,
    make_axes,
    make_figure,
    plot_settings,
    to_svg,
)
from elmore.comparison.results import Comparison, RunResult
from elmore.comparison.summary import find_full_share, summarize
from elmore.comparison.variants import describe
from elmore.comparison.wording import clean

# Fraction of epochs at the start whose low scores would flatten the rest of the plot.
STEEP_PART = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class SeedCurves:
    """The scores of a variant at the epochs that all of its seeds have."""

    variant: str
    epochs: list[int]
    scores: list[list[float]]
    """One list per epoch, one score per seed."""
    tails: list[dict[int, float]]
    """Per seed that trained longer: its scores from the last of `epochs` on."""

    @property
    def means(self) -> list[float]:
        """The mean per epoch."""
        return [statistics.fmean(scores) for scores in self.scores]

    def find_floor(self) -> float:
        """Return the lowest score after the steep start."""
        num_steep = int(STEEP_PART * len(self.epochs))
        return min(min(scores) for scores in self.scores[num_steep:])


def find_curve(runs: Sequence[RunResult]) -> SeedCurves | None:
    """Combine the curves of a variant's seeds; None if they have no epoch in common.

    After the first seed stops there is no mean, since it would be over fewer and fewer seeds.
    """
    seeds = [{point.epoch: point.dev for point in run.curve} for run in runs]
    epochs = [epoch for epoch in seeds[0] if all(epoch in seed for seed in seeds)] if seeds else []
    if not epochs:
        return None
    tails = [{epoch: seed[epoch] for epoch in seed if epoch >= epochs[-1]} for seed in seeds]
    return SeedCurves(
        variant=runs[0].variant,
        epochs=epochs,
        scores=[[seed[epoch] for seed in seeds] for epoch in epochs],
        tails=[tail for tail in tails if len(tail) > 1],
    )


def draw_curves(comparison: Comparison) -> Plot | None:
    """Draw one line per variant at the full share; None if no run recorded its epochs."""
    share = find_full_share(summarize(comparison))
    found = [find_curve(comparison.find_runs(name, share)) for name in comparison.variants]
    curves = [curve for curve in found if curve is not None]
    if not curves:
        return None
    looks = find_looks(comparison.variants)
    with plot_settings():
        from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

        figure = make_figure(height=3.6)
        axes = make_axes(figure)
        for curve in curves:
            look = looks[curve.variant]
            lowest, highest = ([pick(s) for s in curve.scores] for pick in (min, max))
            axes.fill_between(
                curve.epochs, lowest, highest, color=look.color, alpha=0.15, linewidth=0
            )
            axes.plot(
                curve.epochs,
                curve.means,
                color=look.color,
                linestyle=look.dash,
                marker=look.marker,
                markevery=max(1, len(curve.epochs) // 8),
                markersize=4,
            )
            for tail in curve.tails:
                axes.plot(list(tail), list(tail.values()), color=look.color, linewidth=0.6)
        top = axes.get_ylim()[1]
        floor = min(curve.find_floor() for curve in curves)
        axes.set_ylim(floor - 0.05 * (top - floor), top)
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.set_xlabel("epoch")
        axes.set_ylabel(escape_formula(f"{clean(comparison.main_score)} on dev"))
        label_lines(axes, [(looks[curve.variant], curve.means[-1]) for curve in curves])
        svg = to_svg(figure, name="training")
    ends = "; ".join(f"{describe(curve.variant).name} {curve.means[-1]:.2f}" for curve in curves)
    return Plot(
        title="Learning curves",
        caption="Lines are means over seeds; bands extend from the worst seed to the best. "
        "After the first seed stopped, the others continue as thin lines. "
        "The first epochs may be below the panel.",
        alt=f"Dev score by epoch. At the last epoch that all seeds have: {ends}",
        svg=svg,
    )
