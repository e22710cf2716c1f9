"""Sentences with marked predicates to predict arguments for, as JSON lines or columns.

The formats are those of `roles.py` and `role_columns.py`. Arguments are optional, and ignored, so
they need not be valid.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from elmore.errors import DataError
from elmore.tasks.data.lines import has_suffix, quote, read_filled_lines, refuse_none
from elmore.tasks.data.role_columns import (
    FRAMESET,
    NUM_AFTER,
    NUM_BEFORE,
    PREDICATE,
    WORD,
    read_sentence_rows,
)
from elmore.tasks.data.role_examples import RoleExample

_Found = tuple[tuple[str, ...], list[int]]  # a sentence, and the indices of its predicates


def read_predicates(path: Path) -> Iterator[RoleExample]:
    """Yield one example without tags per predicate."""
    is_json = has_suffix(path, ".jsonl")
    found = _read_json_lines(path) if is_json else _read_columns(path)
    examples = (
        RoleExample(tokens=tokens, predicate=predicate, lemma="", sense="", tags=())
        for tokens, predicates in found
        for predicate in predicates
    )
    return refuse_none(examples, complaint=f"{path} has no predicates; give a file that has some")


def _read_json_lines(path: Path) -> Iterator[_Found]:
    for number, line in read_filled_lines(path):
        try:
            entry = json.loads(line)
            tokens, predicates = entry["words"], [frame["pred"] for frame in entry["frames"]]
            is_fit = (
                isinstance(tokens, list)
                and all(isinstance(token, str) and token for token in tokens)
                and all(type(index) is int and 0 <= index < len(tokens) for index in predicates)
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            is_fit = False
        if not is_fit:
            raise DataError(
                f'{path}, line {number}: expected {{"words": [...], "frames": [{{"pred": index of '
                f"a word, from 0}}]}}, got {quote(line)}; fix the line"
            )
        yield tuple(tokens), predicates


def _read_columns(path: Path) -> Iterator[_Found]:
    for numbered in read_sentence_rows(path):
        rows = [columns for _, columns in numbered]
        yield tuple(columns[WORD] for columns in rows), _find_predicates(rows)


def _find_predicates(rows: list[list[str]]) -> list[int]:
    """Return the indices of words marked (V*, or without argument columns, with a frameset."""
    marked = [
        index
        for column in range(NUM_BEFORE, len(rows[0]) - NUM_AFTER)
        for index, row in enumerate(rows)
        if row[column].startswith(f"({PREDICATE}*")
    ]
    return marked or [index for index, row in enumerate(rows) if row[FRAMESET] != "-"]
