"""Semantic roles in columns as CoNLL-2012 has them: one column a predicate, (ARG0* ... *).

The columns: document, part, the word's number, word, part of speech, parse, lemma, frameset, sense,
speaker, name, the predicates' in the order of their words, and coreference.
"""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from elmore.errors import DataError
from elmore.tasks.data.lines import read_lines, shorten, split_columns
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
    """Yield the rows of each sentence, which have equally many columns."""
    rows: list[Row] = []
    for number, line in chain(read_lines(path), [(0, "")]):
        if line.strip() and not line.startswith("#"):
            columns = split_columns(line)
            wanted = len(rows[0][1]) if rows else max(len(columns), NUM_BEFORE + NUM_AFTER)
            if len(columns) != wanted:
                raise DataError(
                    f"{path}, line {number}: wanted {wanted} columns of CoNLL-2012, got "
                    f"{len(columns)} ({shorten(line)}); mend the line, or for JSON lines, name the "
                    "file .jsonl (in plain text no predicates are marked)"
                )
            rows.append((number, columns))
        elif rows:
            yield rows
            rows = []


def _read_sentence(rows: list[Row], *, path: Path) -> RoleSentence:
    first_line, first = rows[0]
    tokens = tuple(columns[WORD] for _, columns in rows)
    places = range(NUM_BEFORE, len(first) - NUM_AFTER)
    return RoleSentence(
        tokens=tokens,
        examples=tuple(
            _read_example(rows, tokens=tokens, place=place, where=f"{path}, line {first_line}")
            for place in places
        ),
    )


def _read_example(
    rows: list[Row], *, tokens: tuple[str, ...], place: int, where: str
) -> RoleExample:
    tags = _read_tags([columns[place] for _, columns in rows], where=f"{where}, column {place + 1}")
    if f"B-{PREDICATE}" not in tags:
        raise DataError(
            f"{where}, column {place + 1}: no word of the sentence is the predicate, (V*); mark it"
        )
    predicate = tags.index(f"B-{PREDICATE}")
    columns = rows[predicate][1]
    lemma = columns[LEMMA]
    sense = f"{lemma}.{columns[FRAMESET]}"
    return make_example(
        tokens, predicate=predicate, lemma=lemma, sense=sense, tags=tags, where=where
    )


def _read_tags(cells: list[str], *, where: str) -> list[str]:
    """Turn brackets into BIO.

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
                f"{where}: word {word} has {cell!r}; wanted brackets that do not overlap, such as "
                "(ARG0* and later *), (V*) or *: mend them"
            )
        role = opened or role
        tags.append(f"{'B' if opened else 'I'}-{role}" if role else "O")
        role = None if closed else role
    if role:
        raise DataError(f"{where}: ({role}* does not close in its sentence; put *) where it ends")
    return tags
