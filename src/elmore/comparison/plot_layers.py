"""Plot the learned layer weights (Peters et al., 2018, figure 2)."""

from typing import TYPE_CHECKING

from elmore.comparison.drawing import (
    INK,
    Plot,
    escape_formula,
    make_figure,
    plot_settings,
    to_svg,
)
from elmore.comparison.layers import LayerRow, find_layer_rows, name_layer
from elmore.comparison.results import Comparison
from elmore.comparison.summary import find_full_share, summarize
from elmore.comparison.variants import describe

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The colors of weights 0 and 1; the contrast holds in grayscale too.
LIGHT, DARK = (0.95, 0.97, 1.0), (0.0, 0.25, 0.45)


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
            f"{describe(row.variant).name}, {row.place_name}: "
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
    return escape_formula(label if label == row.place_name else f"{label}: {row.place_name}")
