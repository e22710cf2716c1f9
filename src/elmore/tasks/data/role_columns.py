"""Semantic roles in CoNLL-2012 columns: one column per predicate, (ARG0* ... *).

The columns are: document, part, word number, word, part of speech, parse, lemma, frameset, sense,
speaker, name, one per predicate in the order of their words, and coreference.
"""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from elmore.errors import DataError
from elmore.tasks.data.lines import quote, read_lines, split_columns
from elmore.tasks.data.role_examples import RoleExample, RoleSentence, make_example

WORD, LEMMA, FRAMESET = 3, 6, 7
NUM_BEFORE, NUM_AFTER = 11, 1  # columns around those of the predicates

PREDICATE = "V"  # its role

_CELL = re.compile(r"(?:\(([^()*]+))?\*(\))?")

Row = tuple[int, list[str]]  # a line's number and its columns


def read_role_columns(path: Path) -> Iterator[RoleSentence]:
    """Yield every sentence with its predicates."""
    for rows in read_sentence_rows(path):
        yield _read_sentence(rows, path=path)


def read_sentence_rows(path: Path) -> Iterator[list[Row]]:
    """Yield the rows of each sentence, which all have the same number of columns."""
    rows: list[Row] = []
    for number, line in chain(read_lines(path), [(0, "")]):
        if line.strip() and not line.startswith("#"):
            columns = split_columns(line)
            expected = len(rows[0][1]) if rows else max(len(columns), NUM_BEFORE + NUM_AFTER)
            if len(columns) != expected:
                raise DataError(
                    f"{path}, line {number}: expected {expected} columns of CoNLL-2012, got "
                    f"{len(columns)} ({quote(line)}); fix the line, or for JSON lines, name the "
                    "file .jsonl (plain text does not work, because predicates must be marked)"
                )
            rows.append((number, columns))
        elif rows:
            yield rows
            rows = []


def _read_sentence(rows: list[Row], *, path: Path) -> RoleSentence:
    first_line, first = rows[0]
    tokens = tuple(columns[WORD] for _, columns in rows)
    return RoleSentence(
        tokens=tokens,
        examples=tuple(
            _read_example(rows, tokens=tokens, column=column, where=f"{path}, line {first_line}")
            for column in range(NUM_BEFORE, len(first) - NUM_AFTER)
        ),
    )


def _read_example(
    rows: list[Row], *, tokens: tuple[str, ...], column: int, where: str
) -> RoleExample:
    cells = [columns[column] for _, columns in rows]
    tags = _read_tags(cells, where=f"{where}, column {column + 1}")
    if f"B-{PREDICATE}" not in tags:
        raise DataError(
            f"{where}, column {column + 1}: no word is marked as the predicate; mark it with (V*)"
        )
    predicate = tags.index(f"B-{PREDICATE}")
    columns = rows[predicate][1]
    lemma = columns[LEMMA]
    sense = f"{lemma}.{columns[FRAMESET]}"
    return make_example(
        tokens, predicate=predicate, lemma=lemma, sense=sense, tags=tags, where=where
    )


def _read_tags(cells: list[str], *, where: str) -> list[str]:
    """Convert brackets to BIO tags.

    >>> _read_tags(["(ARG0*", "*)", "(V*)", "*"], where="")
    ['B-ARG0', 'I-ARG0', 'B-V', 'O']
    """
    tags: list[str] = []
    role: str | None = None
    for word, cell in enumerate(cells):
        match = _CELL.fullmatch(cell)
        opened, closed = match.groups() if match else (None, None)
        if match is None or (opened and role) or (closed and not (opened or role)):
            raise DataError(
                f"{where}: word {word} has {cell!r}, expected brackets that do not overlap, such "
                "as (ARG0* and later *), (V*) or *; fix them"
            )
        role = opened or role
        tags.append(f"{'B' if opened else 'I'}-{role}" if role else "O")
        role = None if closed else role
    if role:
        raise DataError(f"{where}: ({role}* does not close in its sentence; put *) where it ends")
    return tags
