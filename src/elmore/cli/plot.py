"""`elmore plot`: a figure with the training curves of runs."""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmore.cli import options
from elmore.errors import DataError, MissingExtraError
from elmore.explore.training_curves import By, Curve, RunCurves, read_curves
from elmore.files.atomic import replace_file
from elmore.wording import count, format_count, format_perplexity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMS = (".png", ".svg", ".pdf")
# Distinguishable with color blindness, too (Okabe and Ito, 2008).
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
X_LABELS = {
    By.TOKENS: "tokens",
    By.HOURS: "hours",
    By.STEPS: "steps",
}
LOG_MORE = "--restart --set run.log_steps=1"
# Distance between the values next to a panel, as a share of its height.
LABEL_GAP = 0.055


class What(StrEnum):
    """Which curves to draw."""

    LOSS = "loss"
    PERPLEXITY = "perplexity"
    BOTH = "both"


@dataclass(frozen=True, kw_only=True, slots=True)
class _LastValue:
    """A number to write next to the end of a curve."""

    y: float
    text: str
    color: str


def plot(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Folders of training runs, drawn in one figure."),
    ],
    out: Annotated[
        Path | None,
        options.make_out_option(
            "The figure: .png, .svg or .pdf. Default: curve.png in the first run's folder."
        ),
    ] = None,
    by: Annotated[By, typer.Option(help="The x axis.")] = By.TOKENS,
    what: Annotated[
        What, typer.Option(help="The training loss, the held-out perplexity, or both.")
    ] = What.BOTH,
) -> None:
    """Plot the loss and the held-out perplexity of training runs.

    The runs do not have to be finished.

    For example:

        elmore plot run/

        elmore plot small/ large/ --by hours --what perplexity --out compared.svg
    """
    out = out or runs[0] / "curve.png"
    if out.suffix.lower() not in FORMS:
        raise DataError(f"cannot write a figure to {out}; end its name in {', '.join(FORMS)}")
    curves = read_curves(runs, by=by)
    panels = _choose_panels(curves, what=what)
    for note in _notes(curves, what=what):
        print(note, file=sys.stderr)
    figure = _draw(curves, panels, by=by)
    _save(figure, out)
    print(out, file=sys.stderr)


def _choose_panels(curves: Sequence[RunCurves], *, what: What) -> list[What]:
    """Return the requested panels that have data."""
    has_loss = any(run.has_loss for run in curves)
    has_perplexity = any(run.has_perplexity for run in curves)
    names = ", ".join(run.name for run in curves)
    has_ended = all(run.last_step is not None for run in curves)
    if not has_loss and not has_perplexity:
        if has_ended:
            raise DataError(_describe_empty(curves))
        raise DataError(
            f"{names}: no loss and no held-out perplexity logged yet; wait for the first steps"
        )
    if what is What.PERPLEXITY and not has_perplexity:
        remedy = "plot --what loss" if has_ended else "wait, or plot --what loss"
        raise DataError(f"{names}: {_missing('held-out perplexity', has_ended)}; {remedy}")
    if what is What.LOSS and not has_loss:
        is_finite = not any(run.num_losses_left_out for run in curves)
        found = _missing("training loss", has_ended) if is_finite else "no training loss is finite"
        raise DataError(f"{names}: {found}; plot --what perplexity")
    panels = [(What.LOSS, has_loss), (What.PERPLEXITY, has_perplexity)]
    return [panel for panel, has_any in panels if has_any and what in (panel, What.BOTH)]


def _describe_empty(curves: Sequence[RunCurves]) -> str:
    """Explain why finished runs have nothing to plot."""
    ends = ", ".join(
        f"{run.name} ended after {count(run.last_step or 0, 'step')}" for run in curves
    )
    return (
        f"{ends}, before the first line of the log, so there is nothing to plot; train for "
        f"more steps, or again with {LOG_MORE}"
    )


def _missing(what: str, has_ended: bool) -> str:
    return f"no {what} was logged" if has_ended else f"no {what} logged yet"


def _notes(curves: Sequence[RunCurves], *, what: What) -> Iterator[str]:
    """Yield what the figure leaves out."""
    for run in curves:
        has_ended = run.last_step is not None
        if what is not What.LOSS and not run.has_perplexity:
            yield f"{run.name}: {_missing('held-out perplexity', has_ended)}"
        if what is not What.PERPLEXITY and len(run.loss) == 1 and has_ended:
            yield (
                f"{run.name}: only the training loss of the last steps was logged, so it is a "
                f"point and not a curve; for a curve, train again with {LOG_MORE}"
            )
        if what is not What.PERPLEXITY and not run.has_loss and not run.num_losses_left_out:
            yield f"{run.name}: {_missing('training loss', has_ended)}"
        if what is not What.PERPLEXITY and run.num_losses_left_out:
            yield f"{run.name}: {run.num_losses_left_out:,} losses are not finite and are left out"


def _draw(curves: Sequence[RunCurves], panels: Sequence[What], *, by: By) -> "Figure":
    """Draw the panels below each other."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  an extra, and slow
        from matplotlib.ticker import FuncFormatter  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError(needed_for="a figure", extra="plot") from None

    figure = Figure(figsize=(8, 1.4 + 3.4 * len(panels)), dpi=150, layout="constrained")
    figure.suptitle(_escape(_title(curves)), fontweight="bold")
    all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, panel in zip(all_axes, panels, strict=True):
        draw: Callable[[Axes, Sequence[RunCurves]], list[_LastValue]] = (
            _draw_loss if panel is What.LOSS else _draw_perplexity
        )
        last_values = draw(axes, curves)
        axes.grid(visible=True, color="#e4e4e4", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.02)
        _write_last_values(axes, last_values)
    if by is not By.HOURS:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: format_count(x)))
    axes.set_xlabel(X_LABELS[by])
    _add_run_legend(all_axes[0], curves)
    return figure


def _draw_loss(axes: "Axes", curves: Sequence[RunCurves]) -> list[_LastValue]:
    axes.set_ylabel("training loss (nats per token)")
    last_values = []
    for run, color in _with_colors(curves):
        axes.plot(run.loss.x, run.loss.y, color=color, linewidth=0.7, alpha=0.25)
        axes.plot(run.smoothed_loss.x, run.smoothed_loss.y, color=color, linewidth=1.7)
        if run.has_loss:
            x, y = run.smoothed_loss.x[-1], run.smoothed_loss.y[-1]
            axes.plot(x, y, "o", color=color, markersize=4)
            last_values.append(_LastValue(y=y, text=f"{y:.2f}", color=color))
    return last_values


def _draw_perplexity(axes: "Axes", curves: Sequence[RunCurves]) -> list[_LastValue]:
    from matplotlib.lines import Line2D  # noqa: PLC0415
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator  # noqa: PLC0415

    axes.set_ylabel("held-out perplexity")
    axes.set_yscale("log")
    last_values = []
    values: list[float] = []
    for run, color in _with_colors(curves):
        for direction, curve, style in _directions(run):
            axes.plot(curve.x, curve.y, style, color=color, linewidth=1.7)
            values += curve.y
            if len(curve):
                x, y = curve.x[-1], curve.y[-1]
                axes.plot(x, y, "o", color=color, markersize=4)
                text = f"{direction} {format_perplexity(y)}"
                last_values.append(_LastValue(y=y, text=text, color=color))
    is_wide = max(values) > 5 * min(values)
    axes.yaxis.set_major_locator(
        LogLocator(subs=(1, 2, 3, 5)) if is_wide else MaxNLocator(6, steps=[1, 2, 5, 10])
    )
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.10g}"))
    lines = [Line2D([], [], color="#555555", linestyle=style) for style in ("-", "--")]
    axes.legend(lines, ["forward LM", "backward LM"], frameon=False, loc="upper right")
    return last_values


def _directions(run: RunCurves) -> list[tuple[str, Curve, str]]:
    return [("forward", run.forward_perplexity, "-"), ("backward", run.backward_perplexity, "--")]


def _with_colors(curves: Sequence[RunCurves]) -> Iterator[tuple[RunCurves, str]]:
    for number, run in enumerate(curves):
        yield run, COLORS[number % len(COLORS)]


def _write_last_values(axes: "Axes", values: Sequence[_LastValue]) -> None:
    """Write numbers next to the panel, each at about the height where its curve ends."""
    axes.set_ylim(axes.get_ylim())  # fixed, so that the heights below stay valid
    to_share = axes.transData + axes.transAxes.inverted()
    heights = [float(to_share.transform((0, value.y))[1]) for value in values]
    order = sorted(range(len(values)), key=lambda number: heights[number])
    for number, height in zip(order, _spread([heights[n] for n in order]), strict=True):
        axes.text(
            1.015,
            height,
            values[number].text,
            color=values[number].color,
            transform=axes.transAxes,
            verticalalignment="center",
            fontsize="small",
        )


def _spread(heights: Sequence[float]) -> list[float]:
    """Move ascending heights apart, the whole group as little as possible."""
    spread: list[float] = []
    for height in heights:
        spread.append(max(height, spread[-1] + LABEL_GAP) if spread else height)
    shift = sum(spread) - sum(heights)
    return [height - shift / len(heights) for height in spread]


def _add_run_legend(axes: "Axes", curves: Sequence[RunCurves]) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415

    before = axes.get_legend()
    lines = [Line2D([], [], color=color, linewidth=2) for _, color in _with_colors(curves)]
    names = [_escape(run.name) for run in curves]
    axes.legend(lines, names, frameon=False, loc="upper center" if before else "upper right")
    if before is not None:
        axes.add_artist(before)


def _save(figure: "Figure", out: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415

    with (
        replace_file(out) as temporary,
        # Text stays text in an .svg file, so that it can be searched and edited.
        mpl.rc_context({"svg.fonttype": "none"}),
        warnings.catch_warnings(),
    ):
        # A name may have characters that the font does not have.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(temporary, format=out.suffix.lower()[1:])


def _title(curves: Sequence[RunCurves]) -> str:
    names = ", ".join(run.name for run in curves)
    return names if len(names) <= 70 else f"{len(curves)} training runs"


def _escape(name: str) -> str:
    """Escape dollar signs, which matplotlib would read as a formula."""
    return name.replace("$", r"\$")
