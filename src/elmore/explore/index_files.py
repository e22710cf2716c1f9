"""Map the files of an index into memory, and check that they belong together.

Shapes: N tokens, V distinct words, S sentences.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmore.explore.index_state import (
    INDEX,
    SENTENCES,
    TAGS,
    TOKENS,
    IndexState,
    check_folder,
    damaged,
    read_state,
)

Arrays = dict[str, NDArray[Any]]


def open_files(folder: Path) -> tuple[IndexState, Arrays]:
    """Return index.json and all arrays; raise an error if sizes or numbers contradict it."""
    check_folder(folder)
    state = read_state(folder / INDEX, is_complete=True)
    for name, facts in state.files.items():
        if damage := facts.find_damage(folder / name, reads=False):
            raise damaged(damage)
    shapes = state.growing_shapes() | state.sorted_shapes()
    arrays = {
        name: _map(folder / name, dtype=dtype, shape=shape)
        for name, (dtype, shape) in shapes.items()
    }
    for name, problem in _find_problems(state, arrays):
        raise damaged(f"{folder / name} is damaged ({problem})")
    return state, arrays


def check_files(folder: Path, state: IndexState) -> None:
    """Read all files of an index; raise an error if a checksum differs."""
    for name, facts in state.files.items():
        if damage := facts.find_damage(folder / name, reads=True):
            raise damaged(damage)


def _map(path: Path, *, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    if 0 in shape:  # which cannot be mapped
        return np.empty(shape, dtype)
    # Copy on write, although nothing is written: torch warns of arrays that are read-only.
    return np.memmap(path, dtype=dtype, mode="c", shape=shape)


def _find_problems(state: IndexState, arrays: Arrays) -> Iterator[tuple[str, str]]:
    """Yield files with numbers that are out of bounds; an index into another array trusts them."""
    tokens, tags = arrays[TOKENS], arrays[TAGS]
    if _is_outside(tokens, state.num_words):
        yield TOKENS, "it has words that do not exist"
    if _is_outside(tags, len(state.tags) + 1):
        yield TAGS, "it has tags that do not exist"
    starts, lines, documents, sources = arrays[SENTENCES].T
    if _is_unordered(starts, state.num_tokens):
        yield SENTENCES, "its sentences are not in order"
    if lines.min(initial=1) < 1 or documents.min(initial=0) < 0:
        yield SENTENCES, "it has an invalid line or document"
    if _is_outside(sources, len(state.sources)):
        yield SENTENCES, "it has sources that do not exist"
    word_starts = arrays[state.word_starts_name]
    if _is_unordered(word_starts, state.num_tokens) or word_starts[-1] != state.num_tokens:
        yield state.word_starts_name, "its words are not in order"
    if _is_outside(arrays[state.occurrences_name], state.num_tokens):
        yield state.occurrences_name, "it has tokens that do not exist"


def _is_outside(numbers: NDArray[Any], bound: int) -> bool:
    return bool(len(numbers)) and (numbers.min() < 0 or numbers.max() >= bound)


def _is_unordered(starts: NDArray[Any], end: int) -> bool:
    """Return whether starts do not increase from 0 to at most `end`."""
    return bool(
        len(starts) and (starts[0] != 0 or starts[-1] > end or np.any(starts[1:] < starts[:-1]))
    )
