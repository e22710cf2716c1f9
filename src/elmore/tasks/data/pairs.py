"""Labeled texts and pairs of texts, one per line: SNLI's tables, and users' own.

Columns are separated by tabs. The first line may name them, in any order and with other columns
among them; without such a line, the texts come first and the label last.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from elmore.errors import DataError
from elmore.tasks.data.lines import quote, read_filled_lines, refuse_none

INFERENCE_LABELS = ("entailment", "neutral", "contradiction")

# SNLI's label of examples on which its annotators did not agree.
NO_LABEL = "-"

# For distinguishing column names from an example.
_FEWEST_ROWS, _ROWS_LOOKED_AT = 6, 20

# Column names that the first line may have.
_LABEL = ("label", "gold_label")
_TEXT = ("text", "sentence")
PREMISE_NAMES = ("premise", "sentence1", "text1", "text_a")
HYPOTHESIS_NAMES = ("hypothesis", "sentence2", "text2", "text_b")


@dataclass(frozen=True, kw_only=True, slots=True)
class LabeledText:
    """A text to classify."""

    text: str
    label: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LabeledPair:
    """Two texts and the label of the pair."""

    premise: str
    hypothesis: str
    label: str


def read_texts(path: Path, *, labels: Collection[str] | None = None) -> Iterator[LabeledText]:
    """Read one labeled text per line; `labels` are the allowed ones, if given."""
    examples = (
        LabeledText(text=text, label=label)
        for text, label in _read_rows(path, names=(_TEXT, _LABEL), labels=labels)
    )
    complaint = f"{path} has no texts; give one text with a label per line"
    return refuse_none(examples, complaint=complaint)


def read_pairs(path: Path, *, labels: Collection[str] | None = None) -> Iterator[LabeledPair]:
    """Read one labeled pair of texts per line; pairs with the label '-' are skipped."""
    known = None if labels is None else (*labels, NO_LABEL)
    rows = _read_rows(path, names=(PREMISE_NAMES, HYPOTHESIS_NAMES, _LABEL), labels=known)
    examples = (
        LabeledPair(premise=premise, hypothesis=hypothesis, label=label)
        for premise, hypothesis, label in rows
        if label != NO_LABEL
    )
    complaint = f"{path} has no pairs; give one pair with a label per line"
    return refuse_none(examples, complaint=complaint)


def read_bare_texts(path: Path) -> Iterator[str]:
    """Read the texts of a table with or without labels, which are ignored."""
    rows = (text for (text,) in _read_rows(path, names=(_TEXT, _LABEL), needs_label=False))
    return refuse_none(rows, complaint=f"{path} has no texts; give one text per line")


def read_bare_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Read the pairs of a table with or without labels, which are ignored."""
    names = (PREMISE_NAMES, HYPOTHESIS_NAMES, _LABEL)
    rows = (
        (premise, hypothesis)
        for premise, hypothesis in _read_rows(path, names=names, needs_label=False)
    )
    complaint = f"{path} has no pairs; give two texts per line, separated by a tab"
    return refuse_none(rows, complaint=complaint)


def _are_names(path: Path, cells: list[str], indices: list[int]) -> bool:
    """Return whether a first line with known column names is not itself an example.

    It is not if it names a label or two texts. A single cell "text" may be an example; it is a name
    if any text below it has more than one word.
    """
    if any(" " in cell for cell in cells):
        return False
    if len(indices) > 1 or any(name in map(str.lower, cells) for name in _LABEL):
        return True
    lines = read_filled_lines(path)
    (number, _), *others = islice(lines, _ROWS_LOOKED_AT)
    rows = [_split_cells(line) for _, line in others]
    if not any(" " in row[indices[0]] for row in rows if len(row) > indices[0]):
        raise DataError(
            f"{path}, line {number}: {quote(' '.join(cells))} may be column names or an "
            "example; add a line of column names above it, such as text, label"
        )
    return True


def _split_cells(line: str) -> list[str]:
    return [_unquote(cell).strip() for cell in line.split("\t")]


def _read_rows(
    path: Path,
    *,
    names: Sequence[tuple[str, ...]],
    labels: Collection[str] | None = None,
    needs_label: bool = True,
) -> Iterator[list[str]]:
    """Yield the cells of each line in the order of `names`; the last is the label.

    Without `needs_label`, yield only the texts.
    """
    required = names if needs_label else names[:-1]
    indices: list[int] = []
    num_columns = 0
    for number, line in read_filled_lines(path):
        where = f"{path}, line {number}"
        cells = _split_cells(line)
        if not indices:
            header = _find_header(cells, names=names, where=where, needs_label=needs_label)
            if header and not needs_label and not _are_names(path, cells, header):
                header = None
            indices = header or list(range(len(required)))
            has_label = needs_label or len(cells) > len(required)
            num_columns = len(cells) if header else len(names if has_label else required)
            if header:
                continue
            if has_label:
                _refuse_heading(path, names=names)
        if len(cells) != num_columns:
            raise DataError(
                f"{where}: expected {num_columns} columns separated by tabs ({_describe(names)}), "
                f"got {len(cells)} ({quote(line)}); fix the line"
                + (", or replace commas by tabs" if len(cells) == 1 and "," in line else "")
                + ("" if needs_label else ", or name the columns in a first line")
            )
        row = [cells[index] for index in indices]
        if not all(row):
            raise DataError(
                f"{where}: expected {_describe(required)}, but one is empty ({quote(line)}); "
                "fill it in, or leave the line out"
            )
        if labels is not None and row[-1] not in labels:
            raise DataError(
                f"{where}: the label {quote(row[-1])} is not one of {', '.join(labels)}; fix the "
                "line, or if the columns are in another order, name them in a first line, such as "
                f"{_describe(names)}, separated by tabs"
            )
        yield row


def _refuse_heading(path: Path, *, names: Sequence[tuple[str, ...]]) -> None:
    """Refuse a first line of unknown column names, which would become a training example."""
    lines = read_filled_lines(path)
    rows = [(number, line.split("\t")) for number, line in islice(lines, _ROWS_LOOKED_AT)]
    if len(rows) < _FEWEST_ROWS or any(len(cells) != len(names) for _, cells in rows):
        return
    (number, first), *others = rows
    is_odd = first[-1] not in {cells[-1] for _, cells in others}
    are_words = not any(" " in cell for cell in first[:-1])
    are_texts = all(" " in cells[0] for _, cells in others)
    if is_odd and are_words and are_texts:
        raise DataError(
            f"{path}, line {number}: {quote(' '.join(first))} looks like column names, but they "
            f"are unknown; rename them to {_describe(names)}, delete the line, or if it is an "
            "example, add a line of column names above it"
        )


def _find_header(
    cells: list[str], *, names: Sequence[tuple[str, ...]], where: str, needs_label: bool = True
) -> list[int] | None:
    """Return the indices of the required columns if the cells are names, None if they are data.

    The label is the last of `names`; without `needs_label` its index is not returned.
    """
    lowered = [cell.lower() for cell in cells]
    found = [
        next((lowered.index(choice) for choice in choices if choice in lowered), None)
        for choices in names
    ]
    required = found if needs_label else found[:-1]
    indices = [index for index in required if index is not None]
    if len(indices) == len(required):
        return indices
    if found[-1] is None and None in found[:-1]:
        return None
    # An example with the label "label" is unlikely; probably the other names are unknown.
    missing = [choices for choices, index in zip(names, found, strict=True) if index is None]
    raise DataError(
        f"{where}: this line names columns, but none of them is "
        f"{' or '.join(' / '.join(choices) for choices in missing)}; rename one, or if the line is "
        "an example, add a line of column names above it"
    )


def _unquote(cell: str) -> str:
    """Undo quoting by spreadsheets, which double the quotes inside, as in SNLI's tables.

    >>> print(_unquote('"A ""stop"" sign"'), _unquote('"Stop!"'))
    A "stop" sign "Stop!"
    """
    inner = cell.strip()[1:-1]
    is_quoted = cell.strip() == f'"{inner}"' and '""' in inner
    if not is_quoted or '"' in inner.replace('""', ""):
        return cell
    return inner.replace('""', '"')


def _describe(names: Sequence[tuple[str, ...]]) -> str:
    return ", ".join(choices[0] for choices in names)
