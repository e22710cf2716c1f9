"""Sentences with predicates and their arguments (semantic roles): PropBank as JSON lines.

A line is {"words": [...], "frames": [{"pred": 2, "lemma": ..., "sense": ..., "tags": [...]}]}, with
BIO tags; lemma and sense are optional. CoNLL-2012 columns are read by `role_columns.py`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmore.errors import DataError
from elmore.tasks.data.lines import has_suffix, quote, read_filled_lines, refuse_none
from elmore.tasks.data.role_columns import read_role_columns
from elmore.tasks.data.role_examples import RoleExample, RoleSentence, make_example


def read_roles(path: Path) -> Iterator[RoleExample]:
    """Yield one example per predicate; sentences without predicates are skipped."""
    examples = (example for sentence in read_role_sentences(path) for example in sentence.examples)
    return refuse_none(examples, complaint=f"{path} has no predicates; give a file that has some")


def read_role_sentences(path: Path) -> Iterator[RoleSentence]:
    """Yield every sentence with its predicates, so that each has to be embedded only once."""
    is_json = has_suffix(path, ".jsonl")
    sentences = _read_json_lines(path) if is_json else read_role_columns(path)
    return refuse_none(sentences, complaint=f"{path} has no sentences; give a file that has some")


def _read_json_lines(path: Path) -> Iterator[RoleSentence]:
    for number, line in read_filled_lines(path):
        where = f"{path}, line {number}"
        entry = _parse(line, where=where)
        tokens, frames = tuple(entry["words"]), entry["frames"]
        examples = tuple(
            make_example(
                tokens,
                predicate=frame["pred"],
                lemma=frame.get("lemma", ""),
                sense=frame.get("sense", ""),
                tags=frame["tags"],
                where=where,
            )
            for frame in frames
        )
        yield RoleSentence(tokens=tokens, examples=examples)


def _parse(line: str, *, where: str) -> dict[str, Any]:
    """Return the object in a line; an error names the invalid field."""
    form = (
        'expected {"words": [...], "frames": [{"pred": index of a word, from 0, "tags": [one tag '
        "per word]}]}"
    )
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        is_syntax = isinstance(error, ValueError)
        reason = f"it is not JSON ({error})" if is_syntax else "it is nested too deeply"
        raise DataError(f"{where}: {form}, but {reason}; fix the line") from None
    if (wrong := _find_wrong(entry)) is not None:
        raise DataError(f"{where}: {form}, but {wrong} ({quote(line)}); fix the line")
    fit: dict[str, Any] = entry
    return fit


def _find_wrong(entry: Any) -> str | None:
    """Return what is wrong with a line: a field that is missing or has another type."""
    if not isinstance(entry, dict):
        return "it is not an object"
    words: Any = entry.get("words")
    frames = entry.get("frames")
    if not _are_texts(words) or "" in words:
        return "'words' is missing or not a list of words"
    if not isinstance(frames, list):
        return "'frames' is missing or not a list"
    wrong = (_find_wrong_field(frame, number) for number, frame in enumerate(frames, start=1))
    return next((name for name in wrong if name), None)


def _find_wrong_field(frame: Any, number: int) -> str | None:
    if not isinstance(frame, dict):
        return f"frame {number} is not an object"
    is_fit = {
        "pred": type(frame.get("pred")) is int,
        "lemma": isinstance(frame.get("lemma", ""), str),
        "sense": isinstance(frame.get("sense", ""), str),
        "tags": _are_texts(frame.get("tags")),
    }
    wrong = next((name for name, fits in is_fit.items() if not fits), None)
    return wrong and f"{wrong!r} of frame {number} is missing or has the wrong type"


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)
