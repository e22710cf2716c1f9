"""The report as a self-contained HTML file: no scripts, no network, no fonts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from elmore.comparison.drawing import Plot
from elmore.comparison.finding import (
    EXPLANATION,
    JUDGMENTS,
    describe_finding,
    describe_need,
    describe_no_need,
)
from elmore.comparison.html_parts import STYLE, Html, element, figure, join, section, table, terms
from elmore.comparison.layers import LayerRow, find_layer_rows, name_layer
from elmore.comparison.results import Comparison
from elmore.comparison.sample_efficiency import find_needs
from elmore.comparison.summary import Cell, Verdict, find_full_share, summarize
from elmore.comparison.wording import (
    NOTHING,
    describe,
    format_interval,
    format_mean,
    format_number,
    format_percent,
    format_share,
    format_signed,
)
from elmore.wording import format_seconds

# User input is escaped; if some were not, this keeps browsers from running it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def make_page(
    comparison: Comparison,
    *,
    plots: Sequence[Plot],
    command: str,
    note: str | None = None,
    state: str | None = None,
) -> str:
    """Return the page; `note` says why plots are missing, `state` what is still running."""
    cells = summarize(comparison)
    title = f"{comparison.task}: with and without ELMo"
    parts = [
        element("h1", title),
        element("p", describe_finding(comparison, cells), class_="finding"),
        *([element("p", state)] if state else []),
        terms(_list_facts(comparison)),
        section("Scores", make_score_table(comparison, cells)),
        *_show_gains(cells),
        *_show_needs(comparison, cells),
        *_show_plots(plots, note),
        *_show_layers(comparison, cells),
        section("Runs", _hide("Scores of every run", make_run_table(comparison))),
        section("Settings", _hide("All settings", _show_settings(comparison.settings))),
        section("How this was made", element("pre", element("code", command))),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{element('title', title)}\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n{element('main', join(parts, between=chr(10)))}\n</body>\n</html>\n"
    )


def _list_facts(comparison: Comparison) -> Iterator[tuple[str, str]]:
    yield "Task", comparison.task
    yield "Score", f"{comparison.main_score} on {comparison.part}, in percent"
    yield "ELMo model", comparison.elmo
    yield "Model fingerprint", comparison.elmo_fingerprint
    yield "Word vectors", comparison.words
    examples = [f"{number:,} {part}" for part, number in comparison.num_examples.items()]
    yield "Examples", ", ".join(examples)
    if comparison.perplexity:
        values = [f"{value:.1f} {name}" for name, value in comparison.perplexity.items()]
        yield "biLM perplexity before and after fine-tuning", ", ".join(values)


def _show_gains(cells: list[Cell]) -> list[Html]:
    if not any(cell.gain for cell in cells):
        return []
    return [section("Gain", make_gain_table(cells), element("p", EXPLANATION, class_="note"))]


def _show_needs(comparison: Comparison, cells: list[Cell]) -> list[Html]:
    if (reason := describe_no_need(comparison, cells)) is not None:
        return [section("Examples saved", element("p", reason))]
    sentences = [element("li", describe_need(need)) for need in find_needs(cells)]
    if not sentences:
        return []
    note = "Interpolated between the means, linearly on a log axis of examples."
    return [section("Examples saved", element("ul", *sentences), element("p", note, class_="note"))]


def _show_plots(plots: Sequence[Plot], note: str | None) -> list[Html]:
    shown = [element("div", *map(figure, plots), class_="plots")] if plots else []
    shown += [element("p", note)] if note else []
    return [section("Plots", *shown)] if shown else []


def _show_layers(comparison: Comparison, cells: list[Cell]) -> list[Html]:
    rows = find_layer_rows(comparison, share=find_full_share(cells))
    return [section("Layers", make_layer_table(rows))] if rows else []


def _show_settings(settings: Mapping[str, Any]) -> Html:
    lines = (f"{name} = {value}" for name, value in flatten(settings))
    return element("pre", element("code", join(lines, between="\n")))


def _hide(summary: str, content: Html) -> Html:
    """Return content that opens at a click."""
    return element("details", element("summary", summary), content)


def flatten(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield settings as written for `--set`.

    >>> list(flatten({"task": {"hidden_dim": 100}, "seed": 1}))
    [('task.hidden_dim', '100'), ('seed', '1')]
    """
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value)


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
            JUDGMENTS[gain.verdict],
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
            row.position_name,
            *(format_percent(mean) for mean in row.means),
            *[NOTHING] * (num_layers - len(row.means)),
            NOTHING if row.scale is None else format_number(row.scale),
        ]
        for row in rows
    )
    header = ["variant", "position", *(name_layer(number) for number in range(num_layers)), "scale"]
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
