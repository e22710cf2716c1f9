"""Draw held-out perplexity against tokens and against seconds, a line a run."""

from pathlib import Path
from typing import Any

from benchmarks.growth import import_matplotlib, shorten

# The plain trainer is dashed, so that two lines on top of each other both show.
LOOKS = {
    "elmore-adagrad": ("elmore, Adagrad", "#1f5fa8", "-"),
    "plain-adagrad": ("plain PyTorch, Adagrad", "#e0902f", "--"),
    "elmore-adamw": ("elmore, AdamW", "#2e8b57", "-"),
    "plain-adamw": ("plain PyTorch, AdamW", "#b3541e", "--"),
    "elmore-unbounded": ("elmore, Adagrad, no bounds", "#8aaed6", "-"),
}
STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.titlelocation": "left",
    "axes.titlepad": 14,
    "axes.titlesize": 12,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "font.size": 10.5,
}


def draw_curves(curves: list[dict[str, Any]], path: Path) -> None:
    """Write one figure with two panels; the first measure, before any step, is left out."""
    mpl = import_matplotlib()
    from matplotlib import pyplot, ticker  # noqa: PLC0415  only a plot needs it

    with mpl.rc_context(STYLE):
        figure, panels = pyplot.subplots(
            ncols=2, figsize=(11, 4.8), layout="constrained", sharey=True
        )
        for axes, key, title in (
            (panels[0], "tokens", "Held-out perplexity against tokens"),
            (panels[1], "seconds", "… and against time of training"),
        ):
            for curve in curves:
                label, color, line = LOOKS[curve["name"]]
                points = curve["points"][1:]
                axes.plot(
                    [point[key] for point in points],
                    [point["perplexity"] for point in points],
                    color=color,
                    linestyle=line,
                    linewidth=2,
                    label=label,
                )
            axes.set_title(title)
            axes.set(yscale="log", xlabel=key)
            axes.set_xlim(left=0)
            axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda x, _: shorten(x)))
            axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
            axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda y, _: f"{y:,.0f}"))
            axes.yaxis.set_minor_locator(ticker.NullLocator())
        panels[0].set_ylabel("perplexity, both directions")
        panels[0].legend(frameon=False, loc="upper right")
        figure.savefig(path, dpi=160)
        pyplot.close(figure)
