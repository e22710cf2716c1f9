"""Sentences with predicates and their arguments (semantic roles): PropBank as JSON lines.

A line is {"words": [...], "frames": [{"pred": 2, "lemma": ..., "sense": ..., "tags": [...]}]}, with
tags in BIO. Columns as CoNLL-2012 has them are read too, by `role_columns.py`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmore.errors import DataError
from elmore.tasks.data.lines import has_suffix, read_lines, refuse_none, shorten
from elmore.tasks.data.role_columns import read_role_columns
from elmore.tasks.data.role_examples import RoleExample, RoleSentence, make_example


def read_roles(path: Path) -> Iterator[RoleExample]:
    """Yield an example a predicate; sentences without one give none."""
    examples = (example for sentence in read_role_sentences(path) for example in sentence.examples)
    return refuse_none(examples, complaint=f"{path} has no predicates; give a file that has some")


def read_role_sentences(path: Path) -> Iterator[RoleSentence]:
    """Yield every sentence with its predicates, so that each need be embedded but once."""
    is_json = has_suffix(path, ".jsonl")
    sentences = _read_json_lines(path) if is_json else read_role_columns(path)
    return refuse_none(sentences, complaint=f"{path} has no sentences; give a file that has some")


def _read_json_lines(path: Path) -> Iterator[RoleSentence]:
    for number, line in read_lines(path):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        entry = _parse(line)
        if entry is None:
            raise DataError(
                f'{where}: wanted {{"words": [...], "frames": [{{"pred": place of a word, "lemma": '
                f'..., "sense": ..., "tags": [...]}}]}}, got {shorten(line)}; mend the line'
            )
        tokens, frames = tuple(entry["words"]), entry["frames"]
        examples = tuple(
            make_example(
                tokens,
                predicate=frame["pred"],
                lemma=frame["lemma"],
                sense=frame["sense"],
                tags=frame["tags"],
                where=where,
            )
            for frame in frames
        )
        yield RoleSentence(tokens=tokens, examples=examples)


def _parse(line: str) -> dict[str, Any] | None:
    """Return what a line holds, or None if that is of another kind."""
    try:
        entry = json.loads(line)
        frames = entry["frames"]
        is_fit = (
            _are_texts(entry["words"])
            and all(entry["words"])
            and isinstance(frames, list)
            and all(
                type(frame["pred"]) is int
                and _are_texts([frame["lemma"], frame["sense"]])
                and _are_texts(frame["tags"])
                for frame in frames
            )
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return entry if is_fit else None


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)
