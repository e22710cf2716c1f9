"""The plots of the report page."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from elmore.comparison.drawing import (
    INK,
    Plot,
    escape_formula,
    find_looks,
    label_lines,
    make_axes,
    make_figure,
    plot_settings,
    to_svg,
)
from elmore.comparison.layers import LayerRow, find_layer_rows, name_layer
from elmore.comparison.results import WITHOUT, Comparison, RunResult
from elmore.comparison.summary import Cell, find_full_share, summarize
from elmore.comparison.wording import clean, describe, format_mean, format_share
from elmore.wording import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Minimum distance between tick labels, as a fraction of the axis.
TICK_GAP = 0.2
# Fraction of epochs at the start whose low scores would flatten the rest of the plot.
STEEP_PART = 0.2
# The colors of weights 0 and 1; the contrast holds in grayscale too.
LIGHT, DARK = (0.95, 0.97, 1.0), (0.0, 0.25, 0.45)


def draw_variants(comparison: Comparison) -> Plot:
    """Draw the scores of all variants at the full share, one below the other."""
    cells = summarize(comparison)
    share = find_full_share(cells)
    cells = [cell for cell in cells if cell.share == share]
    looks = find_looks(comparison.variants)
    with plot_settings():
        figure = make_figure(height=0.9 + 0.42 * len(cells))
        axes = make_axes(figure)
        for y, cell in enumerate(cells):
            look = looks[cell.variant]
            runs = comparison.find_runs(cell.variant, share)
            scores = [comparison.score_of(run) for run in runs]
            axes.plot(scores, [y] * len(runs), "o", mfc="none", mec="#777777", markersize=4)
            axes.errorbar(
                cell.mean,
                y,
                xerr=cell.deviation,
                fmt=look.marker,
                color=look.color,
                markersize=7,
                capsize=4,
            )
            text = format_mean(cell.mean, cell.deviation)
            axes.text(1.02, y, text, transform=axes.get_yaxis_transform(), va="center")
            if cell.variant == WITHOUT:
                axes.axvline(cell.mean, color=INK, linewidth=0.8, linestyle=":")
        axes.set_yticks(range(len(cells)), [looks[cell.variant].label for cell in cells])
        axes.set_ylim(len(cells) - 0.5, -0.5)
        axes.set_xlabel(escape_formula(f"{clean(comparison.main_score)} on {comparison.part}"))
        svg = to_svg(figure, name="variants")
    examples = count(cells[0].num_train, "training example")
    return Plot(
        title="Variants",
        caption=f"Mean and standard deviation over seeds, with {examples}. "
        "Each hollow dot is one seed.",
        alt="Scores: "
        + "; ".join(
            f"{describe(cell.variant).name} {format_mean(cell.mean, cell.deviation)}"
            for cell in cells
        ),
        svg=svg,
    )


def draw_sample_efficiency(comparison: Comparison) -> Plot | None:
    """Draw one line per variant that was trained on several shares; None if none was."""
    lines = find_lines(summarize(comparison))
    if not lines:
        return None
    shares = {cell.num_train: cell.share for line in lines for cell in line}
    looks = find_looks(comparison.variants)
    with plot_settings():
        figure = make_figure(height=3.6)
        axes = make_axes(figure)
        ends = []
        for line in lines:
            look = looks[line[0].variant]
            means = [cell.mean for cell in line]
            axes.errorbar(
                [cell.num_train for cell in line],
                means,
                yerr=[cell.deviation or 0.0 for cell in line],
                color=look.color,
                marker=look.marker,
                linestyle=look.dash,
                markersize=5,
                capsize=3,
            )
            ends.append((look, means[-1]))
            if line[0].variant == WITHOUT:
                axes.axhline(means[-1], color=INK, linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        ticks = choose_ticks(sorted(shares))
        labels = [f"{number:,}\n{format_share(shares[number])}" for number in ticks]
        axes.set_xticks(ticks, labels)
        axes.set_xticks([], minor=True)
        axes.set_xlabel("training examples")
        axes.set_ylabel(escape_formula(f"{clean(comparison.main_score)} on {comparison.part}"))
        label_lines(axes, ends)
        svg = to_svg(figure, name="sample efficiency")
    return Plot(
        title="With fewer examples",
        caption="Bars are standard deviations over seeds. The dotted line is the score of the "
        "network without ELMo with the most examples.",
        alt=f"Scores of {len(lines)} variants by number of training examples; "
        "the numbers are in the table of scores.",
        svg=svg,
    )


def find_lines(cells: list[Cell]) -> list[list[Cell]]:
    """Return the cells of each variant that has several shares, fewest examples first."""
    variants = dict.fromkeys(cell.variant for cell in cells)
    lines = [[cell for cell in cells if cell.variant == variant] for variant in variants]
    return [line for line in lines if len({cell.num_train for cell in line}) > 1]


def choose_ticks(numbers: list[int]) -> list[int]:
    """Leave out ticks whose labels would overlap the next one on a log axis.

    >>> choose_ticks([10, 99, 100, 1000])
    [10, 100, 1000]
    """
    width = math.log(numbers[-1] / numbers[0])
    kept: list[int] = []
    for number in reversed(numbers):
        if not kept or math.log(kept[0] / number) >= TICK_GAP * width:
            kept.insert(0, number)
    return kept


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


def draw_layers(comparison: Comparison) -> Plot | None:
    """Draw one row per mix and one cell per layer at the full share; None without a learned mix."""
    rows = find_layer_rows(comparison, share=find_full_share(summarize(comparison)))
    if not rows:
        return None
    num_layers = max(len(row.means) for row in rows)
    with plot_settings():
        figure = make_figure(height=0.6 + 0.5 * len(rows))
        axes = figure.subplots()
        for y, row in enumerate(rows):
            draw_row(axes, row, y)
            if row.scale is not None:
                axes.text(num_layers - 0.42, y, f"× {row.scale:.2f}", va="center")
        axes.set_xlim(-0.5, num_layers - 0.5)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xticks(range(num_layers), [name_layer(k) for k in range(num_layers)])
        axes.set_yticks(range(len(rows)), [_name_row(row) for row in rows])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        svg = to_svg(figure, name="layers")
    return Plot(
        title="Layer weights",
        caption="Learned weights after the softmax, in percent, mean ± standard deviation over "
        "seeds; on the right, the learned scale.",
        alt="Weights: "
        + "; ".join(
            f"{describe(row.variant).name}, {row.position_name}: "
            + ", ".join(f"{name_layer(k)} {100 * mean:.0f} %" for k, mean in enumerate(row.means))
            for row in rows
        ),
        svg=svg,
    )


def draw_row(axes: "Axes", row: LayerRow, y: int) -> None:
    """Draw the cells of one mix; larger weights are darker."""
    for layer, (mean, deviation) in enumerate(zip(row.means, row.deviations, strict=True)):
        part = min(max(mean, 0.0), 1.0)
        color = tuple(a + part * (b - a) for a, b in zip(LIGHT, DARK, strict=True))
        # White edges separate the cells.
        axes.fill_between(
            [layer - 0.5, layer + 0.5], y - 0.5, y + 0.5, color=color, ec="white", lw=2
        )
        text = (
            f"{100 * mean:.0f}"
            if deviation is None
            else f"{100 * mean:.0f} ± {100 * deviation:.0f}"
        )
        ink = "white" if part > 0.5 else INK
        axes.text(layer, y, text, color=ink, ha="center", va="center")


def _name_row(row: LayerRow) -> str:
    label = describe(row.variant).label
    return escape_formula(label if label == row.position_name else f"{label}: {row.position_name}")


DRAWS: tuple[Callable[[Comparison], Plot | None], ...] = (
    draw_variants,
    draw_sample_efficiency,
    draw_curves,
    draw_layers,
)


def draw_plots(comparison: Comparison) -> list[Plot]:
    """Draw all plots that the runs have data for; raise MissingExtraError without matplotlib."""
    return [plot for draw in DRAWS if (plot := draw(comparison)) is not None]
