"""Shared by all plots of a report: colors, labels beside lines, reproducible SVG."""

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from elmore.comparison.wording import describe
from elmore.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#222222"
GRID = "#e4e4e4"
# Distinguishable with color blindness (Okabe and Ito, 2008). Markers and dashes distinguish
# variants in grayscale, and if there are more variants than colors.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = "osD^vPX*"
DASHES = ("-", (0, (6, 1.5)), (0, (2, 1)), "-.", (0, (1, 1.2)))
# Distance between labels beside a panel, as a fraction of its height.
LABEL_GAP = 0.072


@dataclass(frozen=True, kw_only=True, slots=True)
class Plot:
    """A figure of the report page."""

    title: str
    caption: str
    alt: str
    """What it shows, for screen readers; the tables have the numbers."""
    svg: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """The style of a variant, the same in all plots."""

    label: str
    color: str
    marker: str
    dash: str | tuple[int, tuple[float, ...]]


def find_looks(variants: Sequence[str]) -> dict[str, Look]:
    """Return the style of each variant; the first, the baseline, is black."""
    return {
        variant: Look(
            label=escape_formula(describe(variant).label),
            color=COLORS[(number - 1) % len(COLORS)] if number else "#000000",
            marker=MARKERS[number % len(MARKERS)],
            dash=DASHES[(number - 1) % len(DASHES)] if number else (0, (1, 1)),
        )
        for number, variant in enumerate(variants)
    }


@contextmanager
def plot_settings() -> Iterator[None]:
    """Use matplotlib's defaults instead of the user's settings, which would change the report."""
    try:
        import matplotlib as mpl  # noqa: PLC0415  an extra, and slow
        import matplotlib.figure  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError(needed_for="a plot", extra="plot") from None
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(
            {
                "svg.fonttype": "none",  # keep text as text; the browser picks a font
                "svg.hashsalt": "elmore",  # reproducible ids
                "text.color": INK,
                "axes.labelcolor": INK,
                "lines.linewidth": 1.7,
            }
        )
        yield


def make_figure(*, height: float) -> "Figure":
    """Return an empty figure, narrow enough for a phone."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    # White even if the page is dark.
    return Figure(figsize=(5.6, height), layout="constrained", facecolor="white")


def make_axes(figure: "Figure") -> "Axes":
    """Return axes with a light grid that fill the figure."""
    axes = figure.subplots()
    axes.grid(visible=True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def label_lines(axes: "Axes", ends: Sequence[tuple[Look, float]]) -> None:
    """Label each line beside the panel, close to the height of its end, with its marker."""
    axes.set_ylim(axes.get_ylim())  # fix the limits, so that heights stay valid
    to_panel = axes.transData + axes.transAxes.inverted()
    heights = [float(to_panel.transform((1, y))[1]) for _, y in ends]
    order = sorted(range(len(ends)), key=lambda number: heights[number])
    spread = spread_out([heights[number] for number in order], gap=LABEL_GAP)
    for number, y in zip(order, spread, strict=True):
        look = ends[number][0]
        axes.plot(
            1.035, y, look.marker, color=look.color, transform=axes.transAxes, clip_on=False,
            markersize=5,
        )  # fmt: skip
        axes.text(1.06, y, look.label, color=INK, transform=axes.transAxes, va="center")


def spread_out(heights: Sequence[float], *, gap: float) -> list[float]:
    """Move ascending heights at least `gap` apart, and keep them inside the panel."""
    spread: list[float] = []
    for height in heights:
        spread.append(max(height, spread[-1] + gap) if spread else max(height, 0.0))
    # If some were pushed out at the top, push the others down.
    limit = 0.97
    for number in reversed(range(len(spread))):
        spread[number] = min(spread[number], limit)
        limit = spread[number] - gap
    return spread


def to_svg(figure: "Figure", *, name: str) -> str:
    """Return a figure as SVG without a date, so that it is reproducible."""
    buffer = io.StringIO()
    with warnings.catch_warnings():
        # Names may have characters missing from matplotlib's font; browsers find another font.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(
            buffer, format="svg", metadata={"Date": None, "Creator": None, "Title": name}
        )
    return buffer.getvalue()


def escape_formula(name: str) -> str:
    """Escape dollar signs, which matplotlib would read as a formula."""
    return name.replace("$", r"\$")
