"""The report in plain text, for a terminal."""

import unicodedata
from collections.abc import Callable, Sequence

from elmore.comparison.finding import describe_finding, describe_need, describe_no_need
from elmore.comparison.results import WITHOUT, Comparison
from elmore.comparison.sample_efficiency import find_needs
from elmore.comparison.summary import Cell, Verdict, summarize
from elmore.comparison.wording import (
    NOTHING,
    clean,
    describe,
    format_interval,
    format_mean,
    format_share,
    format_signed,
)


def write_table(comparison: Comparison) -> str:
    """Return scores and gains, one row per variant and one column per share, and the findings."""
    cells = summarize(comparison)
    score = f"{clean(comparison.main_score)} on {comparison.part}"
    blocks = [
        f"{clean(comparison.task)}: {score} by training examples, mean ± std. dev. (seeds)\n"
        + align(_make_rows(comparison.variants, cells, _write_score))
    ]
    if any(cell.gain for cell in cells):
        others = [variant for variant in comparison.variants if variant != WITHOUT]
        blocks.append(
            "Gain over the network without ELMo (95 % interval over seeds)\n"
            + align(_make_rows(others, cells, _write_gain))
        )
    sentences = [describe_finding(comparison, cells), *map(describe_need, find_needs(cells))]
    if (reason := describe_no_need(comparison, cells)) is not None:
        sentences.append(reason)
    return "\n\n".join([*blocks, *sentences]) + "\n"


def align(rows: Sequence[Sequence[str]]) -> str:
    """Align columns: the first to the left, the others to the right.

    >>> print(align([["", "10"], ["ELMo", "7"]]))
          10
    ELMo   7
    """
    widths = [max(_width(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        start = first + " " * (widths[0] - _width(first))
        cells = [
            " " * (width - _width(cell)) + cell
            for cell, width in zip(others, widths[1:], strict=True)
        ]
        lines.append("  ".join([start, *cells]))
    return "\n".join(lines)


def _make_rows(
    variants: Sequence[str], cells: Sequence[Cell], write: Callable[[Cell], str]
) -> list[list[str]]:
    examples = {cell.share: cell.num_train for cell in cells}
    shares = sorted(examples)
    written = {(cell.variant, cell.share): write(cell) for cell in cells}
    return [
        ["", *(f"{examples[share]:,} ({format_share(share)})" for share in shares)],
        *(
            [describe(variant).name, *(written.get((variant, share), NOTHING) for share in shares)]
            for variant in variants
        ),
    ]


def _write_score(cell: Cell) -> str:
    return f"{format_mean(cell.mean, cell.deviation)} ({cell.num_seeds})"


def _write_gain(cell: Cell) -> str:
    if cell.gain is None:
        return NOTHING
    if cell.gain.verdict is Verdict.NEITHER:
        return str(Verdict.NEITHER)
    interval = f" ({format_interval(cell.gain.interval)})" if cell.gain.interval else ""
    return f"{format_signed(cell.gain.points)}{interval}"


def _width(text: str) -> int:
    """Return the width in terminal columns; Chinese characters take two."""
    return sum(
        0
        if unicodedata.combining(character)
        else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )
