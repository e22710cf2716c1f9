"""The text files of an index: which of them to add, and their sentences."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from elmore.errors import DataError
from elmore.explore.index_state import TOKENS, IndexState, is_index
from elmore.explore.index_writer import IndexedSentence, read_words
from elmore.files.hashing import hash_file
from elmore.settings import read_path
from elmore.text.files import (
    LINE_FORMS,
    TextForm,
    find_files,
    find_files_in,
    guess_form,
    read_numbered_sentences,
)
from elmore.text.language import Language


@dataclass(frozen=True, kw_only=True)
class GivenFile:
    """A text file as it is now."""

    path: Path
    sha256: str
    form: TextForm


def find_text_files(text: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return the files of paths, patterns and folders; raise an error for what does not exist."""
    patterns = list(text) if isinstance(text, list | tuple) else [text]
    found: list[Path] = []
    for path in find_files([str(read_path("text", pattern)) for pattern in patterns]):
        if path.is_dir():
            found += _find_texts_in(path)
        elif path.is_file():
            found.append(path)
        else:
            raise DataError(f"cannot index {path}: there is no such file; check its path")
    if not found:
        raise DataError("no text was given; give the path of a text file")
    return found


def _find_texts_in(folder: Path) -> list[Path]:
    """Return the files in a folder, without those of indexes that were built in it."""
    if is_index(folder):
        raise DataError(f"cannot index {folder}: it is an index itself; give the text")
    paths = find_files_in(folder)
    indexes = {parent for path in paths for parent in path.parents if parent != folder}
    indexes = {parent for parent in indexes if folder in parent.parents and is_index(parent)}
    return [path for path in paths if not indexes.intersection(path.parents)]


def find_sources(
    text: str | Path | Sequence[str | Path], *, form: TextForm | None
) -> list[GivenFile]:
    """Return the files of paths and patterns, with their checksums and forms."""
    return [
        GivenFile(path=path, sha256=hash_file(path), form=form or guess_form(path))
        for path in find_text_files(text)
    ]


def choose_sources(
    given: Sequence[GivenFile], state: IndexState, *, folder: Path
) -> list[GivenFile]:
    """Return the files to add; the one that an earlier call has not finished comes first."""
    done = {(source.sha256, source.form) for source in state.sources if source.is_complete}
    hashes = {source.name: source.sha256 for source in state.sources}
    todo: dict[tuple[str, str], GivenFile] = {}
    for source in given:
        if hashes.get(str(source.path), source.sha256) != source.sha256:
            raise DataError(
                f"{source.path} has changed since it was added to {folder}; use another folder, "
                "or --restart to start over"
            )
        key = (source.sha256, str(source.form))
        if key not in done:
            todo.setdefault(key, source)
    if is_whole(state):
        return list(todo.values())
    last = state.sources[-1]
    first = todo.pop((last.sha256, last.form), None)
    if first is None:
        raise DataError(
            f"{folder} has a part of {last.name}, because an earlier call was interrupted; give "
            "that file too to resume, or --restart to start over"
        )
    return [first, *todo.values()]


def is_whole(state: IndexState) -> bool:
    """Return whether no file was added in part."""
    return all(source.is_complete for source in state.sources)


def read_source(
    source: GivenFile, *, language: Language, words: frozenset[str], on_bytes: Callable[[int], None]
) -> Iterator[IndexedSentence]:
    """Yield the sentences of a file, or those that have one of `words`."""
    document, has_sentences = 0, False
    for sentence in read_numbered_sentences(
        source.path, form=source.form, language=language, on_bytes=on_bytes
    ):
        if words:
            is_kept = any(token.casefold() in words for token in sentence.tokens)
        else:
            is_kept = bool(sentence.tokens) or source.form in LINE_FORMS
        if is_kept:
            yield IndexedSentence(
                tokens=sentence.tokens, tags=sentence.tags, line=sentence.line, document=document
            )
        if sentence.tokens:
            has_sentences = True
        elif has_sentences:
            document, has_sentences = document + 1, False


def skip_done(sentences: Iterator[IndexedSentence], state: IndexState, *, folder: Path) -> None:
    """Pass over the sentences that are in the index, and check that they are the same."""
    source = state.sources[-1]
    words = read_words(folder, state)
    row_bytes = np.dtype("<i4").itemsize
    tokens = np.fromfile(
        folder / TOKENS,
        "<i4",
        count=source.num_tokens,
        offset=(state.num_tokens - source.num_tokens) * row_bytes,
    )
    start = 0
    for sentence in islice(sentences, source.num_sentences):
        end = start + len(sentence.tokens)
        if [words[number] for number in tokens[start:end]] != sentence.tokens:
            start = -1
            break
        start = end
    if start != source.num_tokens:
        raise DataError(
            f"{source.name} is now split into other tokens than in {folder}; use the version of "
            "elmore that started it, or --restart to start over"
        )
