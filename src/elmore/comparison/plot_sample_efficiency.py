"""Plot scores against the number of training examples (Peters et al., 2018, figure 1)."""

import math

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
from elmore.comparison.results import WITHOUT, Comparison
from elmore.comparison.summary import Cell, summarize
from elmore.comparison.wording import clean, format_share

# Minimum distance between tick labels, as a fraction of the axis.
TICK_GAP = 0.2


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
