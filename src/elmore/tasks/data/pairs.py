"""Texts and pairs of texts with a label, a line each: SNLI's tables, and users' own.

Columns are separated by tabs. A first line may name them, in any order and among others;
without it, texts come first and the label last.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from elmore.errors import DataError
from elmore.tasks.data.lines import read_lines, refuse_none, shorten

INFERENCE_LABELS = ("entailment", "neutral", "contradiction")

# What SNLI writes where its annotators did not agree.
NO_LABEL = "-"

# To tell names of columns from an example.
_FEWEST_ROWS, _ROWS_LOOKED_AT = 6, 20

# What a first line may call its columns.
_LABEL = ("label", "gold_label")
_TEXT = ("text", "sentence")
PREMISE_NAMES = ("premise", "sentence1", "text1", "text_a")
HYPOTHESIS_NAMES = ("hypothesis", "sentence2", "text2", "text_b")


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledText:
    """A text to classify."""

    text: str
    label: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledPair:
    """Two texts, and what the first says of the second."""

    premise: str
    hypothesis: str
    label: str


def read_texts(path: Path, *, labels: Collection[str] | None = None) -> Iterator[LabelledText]:
    """Read a text and its label a line; `labels`, if given, are all there may be."""
    examples = (
        LabelledText(text=text, label=label)
        for text, label in _read_rows(path, names=(_TEXT, _LABEL), labels=labels)
    )
    return refuse_none(examples, complaint=f"{path} has no texts; give one with a label a line")


def read_pairs(path: Path, *, labels: Collection[str] | None = None) -> Iterator[LabelledPair]:
    """Read two texts and their label a line; those whose label is '-' are left out."""
    known = None if labels is None else (*labels, NO_LABEL)
    rows = _read_rows(path, names=(PREMISE_NAMES, HYPOTHESIS_NAMES, _LABEL), labels=known)
    examples = (
        LabelledPair(premise=premise, hypothesis=hypothesis, label=label)
        for premise, hypothesis, label in rows
        if label != NO_LABEL
    )
    return refuse_none(examples, complaint=f"{path} has no pairs; give one with a label a line")


def read_bare_texts(path: Path) -> Iterator[str]:
    """Read the texts of a table, whatever its labels are, and if it has none."""
    rows = (text for (text,) in _read_rows(path, names=(_TEXT, _LABEL), needs_label=False))
    return refuse_none(rows, complaint=f"{path} has no texts; give a text a line")


def read_bare_pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Read the pairs of a table, whatever its labels are, and if it has none."""
    names = (PREMISE_NAMES, HYPOTHESIS_NAMES, _LABEL)
    rows = (
        (premise, hypothesis)
        for premise, hypothesis in _read_rows(path, names=names, needs_label=False)
    )
    complaint = f"{path} has no pairs; give two texts a line, with a tab between them"
    return refuse_none(rows, complaint=complaint)


def _are_names(path: Path, cells: list[str], places: list[int]) -> bool:
    """Whether a first line that has the wanted names is no example itself.

    With a label's name among them, or with those of two texts, it is none. A single cell "text"
    may be a text, or a label; then texts below it, of more than a word, say that it is a name.
    """
    if any(" " in cell for cell in cells):
        return False
    if len(places) > 1 or any(name in map(str.lower, cells) for name in _LABEL):
        return True
    lines = ((number, line) for number, line in read_lines(path) if line.strip())
    (number, _), *others = islice(lines, _ROWS_LOOKED_AT)
    rows = [_split_cells(line) for _, line in others]
    if not any(" " in row[places[0]] for row in rows if len(row) > places[0]):
        raise DataError(
            f"{path}, line {number}: {shorten(' '.join(cells))} may be names of columns or an "
            "example; put a line of names above it, such as text, label"
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
    """Yield the cells that `names` ask for, in their order, of each line; the label is the last.

    Where it is not needed, the texts alone are yielded.
    """
    wanted = names if needs_label else names[:-1]
    places: list[int] = []
    num_columns = 0
    for number, line in read_lines(path):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        cells = _split_cells(line)
        if not places:
            header = _find_header(cells, names=names, where=where, needs_label=needs_label)
            if header and not needs_label and not _are_names(path, cells, header):
                header = None
            places = header or list(range(len(wanted)))
            has_label = needs_label or len(cells) > len(wanted)
            num_columns = len(cells) if header else len(names if has_label else wanted)
            if header:
                continue
            if has_label:
                _refuse_heading(path, names=names)
        if len(cells) != num_columns:
            raise DataError(
                f"{where}: wanted {num_columns} columns with tabs between them "
                f"({_describe(names)}), got {len(cells)} ({shorten(line)}); mend the line"
                + (", or put tabs for commas" if len(cells) == 1 and "," in line else "")
                + ("" if needs_label else ", or name the columns in a first line")
            )
        row = [cells[place] for place in places]
        if not all(row):
            raise DataError(
                f"{where}: wanted {_describe(wanted)}, but one is empty ({shorten(line)}); fill "
                "it, or leave the line out"
            )
        if labels is not None and row[-1] not in labels:
            raise DataError(
                f"{where}: the label {shorten(row[-1])} is none of {', '.join(labels)}; mend the "
                "line, or if the columns are in another order, name them in a first line, such as "
                f"{_describe(names)}, with tabs between"
            )
        yield row


def _refuse_heading(path: Path, *, names: Sequence[tuple[str, ...]]) -> None:
    """Refuse a first line of names that are not known here, which would be learned from."""
    lines = ((number, line) for number, line in read_lines(path) if line.strip())
    rows = [(number, line.split("\t")) for number, line in islice(lines, _ROWS_LOOKED_AT)]
    if len(rows) < _FEWEST_ROWS or any(len(cells) != len(names) for _, cells in rows):
        return
    (number, first), *others = rows
    is_odd = first[-1] not in {cells[-1] for _, cells in others}
    are_words = not any(" " in cell for cell in first[:-1])
    are_texts = all(" " in cells[0] for _, cells in others)
    if is_odd and are_words and are_texts:
        raise DataError(
            f"{path}, line {number}: {shorten(' '.join(first))} looks like names of columns, but "
            f"these are not known; call them {_describe(names)}, delete the line, or if it is an "
            "example, put a line of names above it"
        )


def _find_header(
    cells: list[str], *, names: Sequence[tuple[str, ...]], where: str, needs_label: bool = True
) -> list[int] | None:
    """Return where the wanted columns are if these cells are names, None if they are data.

    The label is the last of `names`; where it is not needed, its place is not returned.
    """
    lowered = [cell.lower() for cell in cells]
    found = [
        next((lowered.index(choice) for choice in choices if choice in lowered), None)
        for choices in names
    ]
    wanted = found if needs_label else found[:-1]
    places = [place for place in wanted if place is not None]
    if len(places) == len(wanted):
        return places
    if found[-1] is None and None in found[:-1]:
        return None
    # A label called "label" would be strange; more likely the other names are not known here.
    missing = [choices for choices, place in zip(names, found, strict=True) if place is None]
    raise DataError(
        f"{where}: this line names columns, but none of them is "
        f"{' or '.join(' / '.join(choices) for choices in missing)}; rename one, or if the line is "
        "an example, put a line of names above it"
    )


def _unquote(cell: str) -> str:
    """Undo the quotes of a spreadsheet, which doubles those inside; SNLI's tables have them.

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
