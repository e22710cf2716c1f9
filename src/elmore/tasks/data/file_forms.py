"""Guess the format of a data file, so that errors can name the format of another task's file."""

import json
import re
from collections.abc import Callable, Collection, Iterator
from enum import StrEnum
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from elmore.errors import DataError
from elmore.tasks.data.columns import is_span_tag
from elmore.tasks.data.lines import read_lines, split_columns

# The guess uses this many lines, including blank ones; fewer than the minimum are not enough.
_LINES_LOOKED_AT, _FEWEST_LINES = 40, 3

# A tree begins with a label and a phrase, or consists of a label and one token.
TREE = re.compile(r"\s*\([0-4] *(?:\(|[^ ()]+\)\s*$)")
_JSON_BEGINNING = re.compile(r'\s*(?:\[\s*)*\{\s*"[^"\n]*"\s*:')
_JSON_DATA = re.compile(r'\s*(?:\[|\{\s*"(?:data|version)")')  # a list, or SQuAD's keys
_BEGIN_DOCUMENT = re.compile(r"#\s*begin document\b")
_CONLLU_ID = re.compile(r"[0-9]+(?:[-.][0-9]+)?")
_NUM_CONLLU_COLUMNS, _MIN_CONLL2012_COLUMNS = 10, 12
# Column names that identify the first line of a CSV file.
_CSV_NAMES = {"text", "sentence", "label", "gold_label", "premise", "hypothesis", "sentence1"}

_Example = TypeVar("_Example")
_Read = Callable[[Any, Path], Iterator[_Example]]


class FileForm(StrEnum):
    """A format that can be recognized by its first lines; the value is its name in messages."""

    JSON_LINES = "JSON lines, one object per line"
    JSON = "a JSON document"
    TREES = "trees of the Stanford Sentiment Treebank"
    CONLLU = "CoNLL-U"
    CONLL2012 = "CoNLL-2012 columns"
    COLUMNS = "columns with one token per line"
    TABLE = "a table of texts with columns separated by tabs"
    CSV = "comma-separated values (CSV)"


# Short lines of text may look like columns, and sentences with commas like CSV, but not like these.
_NEVER_TEXT = {
    FileForm.JSON_LINES,
    FileForm.JSON,
    FileForm.TREES,
    FileForm.CONLLU,
    FileForm.CONLL2012,
    FileForm.TABLE,
}

_READERS = {
    FileForm.TREES: "sentiment",
    FileForm.CONLLU: "tags, or coreference if it has Entity=",
    FileForm.CONLL2012: "coreference or roles",
    FileForm.COLUMNS: "entities or tags",
    FileForm.TABLE: "texts, pairs or entailment",
}


def reads(
    *forms: FileForm, expected: str, takes_text: bool = False
) -> Callable[[_Read[_Example]], _Read[_Example]]:
    """Decorate a task's reading method so that it names the format of a file it cannot read.

    `forms` are the formats that it reads, and `expected` describes them in messages. The format is
    guessed if reading fails before the first example. With `takes_text`, reading never fails,
    because anything can be read as text, so files that are clearly not text are refused first.
    """

    def decorate(read: _Read[_Example]) -> _Read[_Example]:
        @wraps(read)
        def read_or_name(self: Any, path: Path) -> Iterator[_Example]:
            if takes_text and (form := _find_other_form(path, forms)) in _NEVER_TEXT:
                raise _refuse(path, form, forms=forms, task=self.name, expected=expected)
            try:
                examples = read(self, path)
                first = list(islice(examples, 1))
            except DataError as error:
                if (form := _find_other_form(path, forms)) is None:
                    raise
                raise _refuse(path, form, forms=forms, task=self.name, expected=expected) from error
            yield from first
            yield from examples

        return read_or_name

    return decorate


def guess_form(path: Path) -> FileForm | None:
    """Return the format if the first lines leave no doubt; None for text, or if in doubt."""
    try:
        lines = [line for _, line in islice(read_lines(path), _LINES_LOOKED_AT)]
    except DataError:  # not UTF-8, or truncated: the reader reports it
        return None
    filled = [line for line in lines if line.strip()]
    if not filled:
        return None
    is_json = filled[0].lstrip().startswith(("{", "["))
    if is_json and (form := _guess_json(filled)) is not None:
        return form
    if all(map(TREE.match, filled)):
        return FileForm.TREES
    return _guess_columns(filled, has_blanks=len(filled) < len(lines))


def _guess_json(lines: list[str]) -> FileForm | None:
    """Guess from the beginnings of lines, because invalid JSON should be recognized too."""
    if all(map(_JSON_BEGINNING.match, lines)):
        is_document = len(lines) == 1 and _JSON_DATA.match(lines[0])
        return FileForm.JSON if is_document else FileForm.JSON_LINES
    # A document of many lines has its first key in line 1 or 2.
    return FileForm.JSON if _JSON_BEGINNING.match("\n".join(lines[:2])) else None


def _guess_columns(lines: list[str], *, has_blanks: bool) -> FileForm | None:
    rows = [split_columns(line) for line in lines if not line.startswith("#")]
    if _BEGIN_DOCUMENT.match(lines[0]) and rows and len(rows[0]) >= _MIN_CONLL2012_COLUMNS:
        return FileForm.CONLL2012
    if rows and all(
        len(row) == _NUM_CONLLU_COLUMNS and _CONLLU_ID.fullmatch(row[0]) for row in rows
    ):
        return FileForm.CONLLU
    rows = list(map(split_columns, lines))  # '#' is a token of plain columns
    if len(rows) < _FEWEST_LINES:
        return None
    is_even = len(rows[0]) >= 2 and all(len(row) == len(rows[0]) for row in rows)
    num_texts = sum(any(" " in cell for cell in row) for row in rows)
    if is_even and num_texts > len(rows) / 2:  # only lines with tabs have spaces within cells
        return FileForm.TABLE
    are_numbered = all(row[0].isdigit() for row in rows)  # as in OntoGUM's three columns
    if is_even and not are_numbered and (has_blanks or all(is_span_tag(row[-1]) for row in rows)):
        return FileForm.COLUMNS
    names = {name.strip().strip('"').lower() for name in lines[0].split(",")}
    is_csv = len(names) > 1 and names & _CSV_NAMES and all("," in line for line in lines)
    return FileForm.CSV if is_csv else None


def _find_other_form(path: Path, forms: Collection[FileForm]) -> FileForm | None:
    """Return the format of a file if it is clearly not one of `forms`."""
    form = guess_form(path) if path.is_file() else None
    return None if form in forms else form


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _refuse(
    path: Path, form: FileForm, *, forms: Collection[FileForm], task: str, expected: str
) -> DataError:
    remedy = "give such a file"
    if form in _READERS:
        remedy += f", or choose a task that reads this one ({_READERS[form]})"
    elif form is FileForm.CSV and FileForm.TABLE in forms:
        remedy = "replace the commas by tabs"
    elif (reader := _find_json_reader(path)) is not None:
        remedy += f", or choose the task that reads this one ({reader})"
    return DataError(f"{path} looks like {form}, but {task} reads {expected}; {remedy}")


def _find_json_reader(path: Path) -> str | None:
    """Return the task that reads this JSON file."""
    first = next((_parse(line) for _, line in read_lines(path) if line.strip()), None)
    keys = first.keys() if isinstance(first, dict) else ()
    if "words" in keys and "frames" in keys:
        return "roles"
    return "questions" if "data" in keys else None
