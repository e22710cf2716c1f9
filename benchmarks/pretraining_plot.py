"""Draw held-out perplexity against tokens, one line per run."""

from pathlib import Path
from typing import Any

from benchmarks.growth import STYLE, import_matplotlib, shorten

# The plain trainer is dashed, so that overlapping lines can be seen.
LOOKS = {
    "elmore-adagrad": ("elmore, Adagrad", "#1f5fa8", "-"),
    "plain-adagrad": ("plain PyTorch, Adagrad", "#e0902f", "--"),
    "elmore-adamw": ("elmore, AdamW", "#2e8b57", "-"),
    "plain-adamw": ("plain PyTorch, AdamW", "#b3541e", "--"),
    "elmore-unbounded": ("elmore, Adagrad, no bounds", "#8aaed6", "-"),
}


def draw_curves(curves: list[dict[str, Any]], path: Path) -> None:
    """Write a figure; the first measure, before any step, is left out.

    Against tokens only: how long the steps took depends on what else the machine did, and
    `pretraining_speed.py` compares that side by side.
    """
    mpl = import_matplotlib()
    from matplotlib import pyplot, ticker  # noqa: PLC0415  only a plot needs it

    with mpl.rc_context(STYLE):
        figure, axes = pyplot.subplots(figsize=(7.5, 4.8), layout="constrained")
        for curve in curves:
            label, color, line = LOOKS[curve["name"]]
            points = curve["points"][1:]
            axes.plot(
                [point["tokens"] for point in points],
                [point["perplexity"] for point in points],
                color=color,
                linestyle=line,
                linewidth=2,
                label=label,
            )
        axes.set_title("Held-out perplexity against tokens trained on")
        axes.set(yscale="log", xlabel="tokens")
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda x, _: shorten(x)))
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda y, _: shorten(y)))
        axes.yaxis.set_minor_locator(ticker.NullLocator())
        axes.legend(frameon=False)
        figure.savefig(path, dpi=130)
        pyplot.close(figure)
