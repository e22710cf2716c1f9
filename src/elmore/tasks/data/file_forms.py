"""What a data file looks like, so that one of another task's format is called what it is."""

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

# Lines that a guess is made from, blank ones among them; fewer than the least prove nothing.
_LINES_LOOKED_AT, _FEWEST_LINES = 40, 3

# A tree begins with a label and a phrase, or is a label and one token.
TREE = re.compile(r"\s*\([0-4] *(?:\(|[^ ()]+\)\s*$)")
_JSON_BEGINNING = re.compile(r'\s*(?:\[\s*)*\{\s*"[^"\n]*"\s*:')
_JSON_DATA = re.compile(r'\s*(?:\[|\{\s*"(?:data|version)")')  # a list, or SQuAD's keys
_BEGIN_DOCUMENT = re.compile(r"#\s*begin document\b")
_CONLLU_ID = re.compile(r"[0-9]+(?:[-.][0-9]+)?")
_NUM_CONLLU_COLUMNS, _MIN_CONLL2012_COLUMNS = 10, 12
# What a first line with commas is called by, if it names columns.
_CSV_NAMES = {"text", "sentence", "label", "gold_label", "premise", "hypothesis", "sentence1"}

_Example = TypeVar("_Example")
_Read = Callable[[Any, Path], Iterator[_Example]]


class FileForm(StrEnum):
    """A format that can be told by its first lines; the value is what a message calls it."""

    JSON_LINES = "JSON lines, one object per line"
    JSON = "a JSON document"
    TREES = "trees of the Stanford Sentiment Treebank"
    CONLLU = "CoNLL-U"
    CONLL2012 = "CoNLL-2012 columns"
    COLUMNS = "columns with one token per line"
    TABLE = "a table of texts, with tabs between columns"
    CSV = "comma-separated values (CSV)"


# Short lines of text may look like columns, and sentences with commas like CSV; these are clear.
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
    *forms: FileForm, wanted: str, takes_text: bool = False
) -> Callable[[_Read[_Example]], _Read[_Example]]:
    """Let a task's method that reads a file name the format of one that it cannot read.

    `forms` are what it reads, and `wanted` is what a message calls them. A file is judged when its
    reading fails before the first example. With `takes_text`, reading would not fail, as anything
    can be read as text; then what is clearly no text is refused first.
    """

    def decorate(read: _Read[_Example]) -> _Read[_Example]:
        @wraps(read)
        def read_or_name(self: Any, path: Path) -> Iterator[_Example]:
            if takes_text and (form := _find_other_form(path, forms)) in _NEVER_TEXT:
                raise _refuse(path, form, forms=forms, task=self.name, wanted=wanted)
            try:
                examples = read(self, path)
                first = list(islice(examples, 1))
            except DataError as error:
                if (form := _find_other_form(path, forms)) is None:
                    raise
                raise _refuse(path, form, forms=forms, task=self.name, wanted=wanted) from error
            yield from first
            yield from examples

        return read_or_name

    return decorate


def guess_form(path: Path) -> FileForm | None:
    """Return the format that the first lines show beyond doubt; None for text, or if in doubt."""
    try:
        lines = [line for _, line in islice(read_lines(path), _LINES_LOOKED_AT)]
    except DataError:  # not UTF-8, or cut off: the reader has said so
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
    """Tell by how lines begin: one that cannot be parsed is still JSON, with a mistake."""
    if all(map(_JSON_BEGINNING.match, lines)):
        is_document = len(lines) == 1 and _JSON_DATA.match(lines[0])
        return FileForm.JSON if is_document else FileForm.JSON_LINES
    # A document over many lines has its first key in the first or second of them.
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
    are_numbered = all(row[0].isdigit() for row in rows)  # as OntoGUM's three columns
    if is_even and not are_numbered and (has_blanks or all(is_span_tag(row[-1]) for row in rows)):
        return FileForm.COLUMNS
    names = {name.strip().strip('"').lower() for name in lines[0].split(",")}
    is_csv = len(names) > 1 and names & _CSV_NAMES and all("," in line for line in lines)
    return FileForm.CSV if is_csv else None


def _find_other_form(path: Path, forms: Collection[FileForm]) -> FileForm | None:
    """Return the format of a file that is clearly none of `forms`."""
    form = guess_form(path) if path.is_file() else None
    return None if form in forms else form


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _refuse(
    path: Path, form: FileForm, *, forms: Collection[FileForm], task: str, wanted: str
) -> DataError:
    remedy = "give such a file"
    if form in _READERS:
        remedy += f", or choose a task that reads this one ({_READERS[form]})"
    elif form is FileForm.CSV and FileForm.TABLE in forms:
        remedy = "put tabs in place of the commas"
    elif (reader := _find_json_reader(path)) is not None:
        remedy += f", or choose the task that reads this one ({reader})"
    return DataError(f"{path} looks like {form}, but {task} reads {wanted}; {remedy}")


def _find_json_reader(path: Path) -> str | None:
    """Return the task whose JSON a file is."""
    first = next((_parse(line) for _, line in read_lines(path) if line.strip()), None)
    keys = first.keys() if isinstance(first, dict) else ()
    if "words" in keys and "frames" in keys:
        return "roles"
    return "questions" if "data" in keys else None
