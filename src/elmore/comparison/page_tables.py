"""The tables of the page."""

from elmore.comparison.finding import JUDGEMENTS
from elmore.comparison.html_parts import Html, element, join, table
from elmore.comparison.layers import LayerRow, name_layer
from elmore.comparison.results import Comparison
from elmore.comparison.summary import Cell, Verdict
from elmore.comparison.variants import describe
from elmore.comparison.wording import (
    NOTHING,
    format_interval,
    format_mean,
    format_number,
    format_percent,
    format_seconds,
    format_share,
    format_signed,
)


def make_score_table(comparison: Comparison, cells: list[Cell]) -> Html:
    """Return a table with one row per variant and one column per share."""
    examples = {cell.share: cell.num_train for cell in cells}
    by_key = {(cell.variant, cell.share): cell for cell in cells}
    header = [
        join([f"{examples[share]:,} ", element("small", f"({format_share(share)})")])
        for share in comparison.shares
    ]
    rows = (
        [
            describe(variant).name,
            *(_write_score(by_key.get((variant, share))) for share in comparison.shares),
        ]
        for variant in comparison.variants
    )
    caption = (
        f"{comparison.main_score} on {comparison.part} by training examples: mean ± standard "
        "deviation (number of seeds)"
    )
    return table(caption, ["variant", *header], rows)


def _write_score(cell: Cell | None) -> str:
    if cell is None:
        return NOTHING
    score = format_mean(cell.mean, cell.deviation)
    return join([f"{score} ", element("small", f"({cell.num_seeds})")])


def make_gain_table(cells: list[Cell]) -> Html:
    """Return a table with one row per gain."""
    rows = (
        [
            describe(cell.variant).name,
            f"{cell.num_train:,}",
            NOTHING if gain.verdict is Verdict.NEITHER else format_signed(gain.points),
            NOTHING if gain.verdict is Verdict.NEITHER else format_percent(gain.error_share),
            NOTHING
            if gain.paired_mean is None or gain.verdict is Verdict.NEITHER
            else format_mean(gain.paired_mean, gain.paired_deviation),
            format_interval(gain.interval),
            JUDGEMENTS[gain.verdict],
        ]
        for cell in cells
        if (gain := cell.gain)
    )
    header = [
        "variant",
        "examples",
        "gain",
        "errors removed",
        "paired difference",
        "95 % interval",
        "conclusion",
    ]
    caption = "Compared with the network without ELMo on the same number of examples"
    return table(caption, header, rows)


def make_layer_table(rows: list[LayerRow]) -> Html:
    """Return a table with one row per mix and one column per layer."""
    num_layers = max(len(row.means) for row in rows)
    lines = (
        [
            describe(row.variant).name,
            row.place_name,
            *(format_percent(mean) for mean in row.means),
            *[NOTHING] * (num_layers - len(row.means)),
            NOTHING if row.scale is None else format_number(row.scale),
        ]
        for row in rows
    )
    header = ["variant", "place", *(name_layer(number) for number in range(num_layers)), "scale"]
    caption = "Learned layer weights (after the softmax), mean over seeds, with the most examples"
    return table(caption, header, lines)


def make_run_table(comparison: Comparison) -> Html:
    """Return a table with one row per run and all scores."""
    names = dict.fromkeys(
        (part, name)
        for run in comparison.runs
        for part, scores in run.scores.items()
        for name in scores
    )
    rows = (
        [
            describe(run.variant).name,
            f"{run.num_train:,}",
            str(run.seed),
            *(
                format_number(run.scores[part][name])
                if name in run.scores.get(part, {})
                else NOTHING
                for part, name in names
            ),
            str(run.best_epoch),
            format_seconds(run.seconds),
            f"{run.num_parameters:,}",
        ]
        for variant in comparison.variants
        for share in comparison.shares
        for run in comparison.find_runs(variant, share)
    )
    scores = [f"{part} {name}" for part, name in names]
    header = ["variant", "examples", "seed", *scores, "best epoch", "time", "parameters"]
    return table("All training runs", header, rows)
