"""The plots of the report page."""

from collections.abc import Callable

from elmore.comparison.drawing import Plot
from elmore.comparison.plot_curves import draw_curves
from elmore.comparison.plot_layers import draw_layers
from elmore.comparison.plot_sample_efficiency import draw_sample_efficiency
from elmore.comparison.plot_variants import draw_variants
from elmore.comparison.results import Comparison

DRAWS: tuple[Callable[[Comparison], Plot | None], ...] = (
    draw_variants,
    draw_sample_efficiency,
    draw_curves,
    draw_layers,
)


def draw_plots(comparison: Comparison) -> list[Plot]:
    """Draw all plots that the runs have data for; raise MissingExtraError without matplotlib."""
    return [plot for draw in DRAWS if (plot := draw(comparison)) is not None]
