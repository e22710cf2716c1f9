"""Plot each variant's mean, standard deviation and seeds."""

from elmore.comparison.drawing import (
    INK,
    Plot,
    escape_formula,
    find_looks,
    make_axes,
    make_figure,
    plot_settings,
    to_svg,
)
from elmore.comparison.results import WITHOUT, Comparison
from elmore.comparison.summary import find_full_share, summarize
from elmore.comparison.variants import describe
from elmore.comparison.wording import clean, format_mean
from elmore.wording import count


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
