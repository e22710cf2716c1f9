"""Append sentences with their vectors to an index, and commit what was written.

Shapes: N tokens of some sentences, D both directions of one layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from elmore.embed.token_escapes import escape_token, unescape_token
from elmore.errors import DataError
from elmore.explore.index_state import (
    INDEX,
    MAX_TAGS,
    PROGRESS,
    SENTENCES,
    TAGS,
    TOKENS,
    WORDS,
    IndexSource,
    IndexState,
    damaged,
    norms_name,
    vectors_name,
)
from elmore.files.atomic import explaining_write_errors, replace_file
from elmore.files.growing_file import FileFacts, GrowingFile, compute_crc32


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexedSentence:
    """A sentence and where it comes from."""

    tokens: list[str]
    tags: list[str] | None
    line: int
    document: int  # of its source, from 0


class IndexWriter:
    """Writes to the files of an index, after what `state` says is in them."""

    def __init__(self, folder: Path, state: IndexState) -> None:
        self.folder = folder
        self.state = state
        self._files: dict[str, GrowingFile] = {}
        try:
            for name in (WORDS, *state.growing_shapes()):
                self._files[name] = GrowingFile(
                    folder / name, state.files[name], make_error=damaged
                )
            self._words = {word: n for n, word in enumerate(read_words(folder, state))}
            self._chosen = frozenset(state.settings.words)
            self._chosen_ids = {
                number for word, number in self._words.items() if word.casefold() in self._chosen
            }
            self._tags = {"": 0, **{tag: n for n, tag in enumerate(state.tags, start=1)}}
        except BaseException:
            self.close()
            raise

    def add(
        self, sentences: Sequence[IndexedSentence], vectors: Sequence[NDArray[np.float32]]
    ) -> None:
        """Append sentences of the last source with their (layers, tokens, D) vectors."""
        ids, new_rows = self._number_words(sentences)
        rows = self._find_rows(ids)
        self._append(TOKENS, np.array(ids, "<i4"))
        self._append(TAGS, np.array(self._number_tags(sentences), "<u2"))
        self._append(SENTENCES, self._place(sentences))
        for number, layer in enumerate(self.state.settings.layers):
            halves = _join_halves([part[number] for part in vectors], num_rows=len(ids))
            halves = halves[rows if layer else new_rows].contiguous()
            norms = torch.linalg.vector_norm(halves, dim=-1, dtype=torch.float32)
            if not torch.isfinite(norms).all():
                raise DataError(
                    f"layer {layer} of this model has numbers that f16 cannot hold; leave it out "
                    "with --layers"
                )
            self._append(vectors_name(layer), halves.numpy())
            self._append(norms_name(layer), norms.numpy())
        *others, source = self.state.sources
        source = replace(
            source,
            num_sentences=source.num_sentences + len(sentences),
            num_tokens=source.num_tokens + len(ids),
        )
        self.state = replace(
            self.state,
            sources=(*others, source),
            tags=tuple(tag for tag in self._tags if tag),
            num_words=len(self._words),
            num_tokens=self.state.num_tokens + len(ids),
            num_sentences=self.state.num_sentences + len(sentences),
            num_words_with_vectors=self.state.num_words_with_vectors + len(new_rows),
            num_tokens_with_vectors=self.state.num_tokens_with_vectors
            + (len(ids) if isinstance(rows, slice) else len(rows)),
        )

    def start_source(self, source: IndexSource) -> None:
        """Let the following sentences belong to this source."""
        self.state = replace(self.state, sources=(*self.state.sources, source))

    def end_source(self) -> None:
        """Record that the last source is complete."""
        *others, source = self.state.sources
        self.state = replace(self.state, sources=(*others, replace(source, is_complete=True)))

    def commit(self) -> None:
        """Make everything so far survive a kill."""
        files = {name: file.commit() for name, file in self._files.items()}
        self.state = replace(self.state, files=files)
        self.state.write(self.folder / PROGRESS)

    def finish(self) -> IndexState:
        """Sort the occurrences by word, and replace index.json: the index is complete."""
        self.commit()
        tokens = np.fromfile(self.folder / TOKENS, "<i4", count=self.state.num_tokens)
        counts = np.bincount(tokens, minlength=self.state.num_words)
        made = {
            self.state.occurrences_name: np.argsort(tokens, kind="stable").astype("<i8"),
            self.state.word_starts_name: np.concatenate(([0], np.cumsum(counts))).astype("<i8"),
        }
        facts = {name: _write_array(self.folder / name, array) for name, array in made.items()}
        self.state = replace(self.state, files={**self.state.files, **facts})
        self.state.write(self.folder / INDEX)
        with explaining_write_errors(self.folder):
            for path in [*self.folder.glob("occurrences-*"), *self.folder.glob("word_starts-*")]:
                if path.name not in made:
                    path.unlink()
            (self.folder / PROGRESS).unlink()
        return self.state

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()

    def __enter__(self) -> "IndexWriter":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _append(self, name: str, array: NDArray[np.generic]) -> None:
        if array.size:
            self._files[name].append(array)

    def _number_words(self, sentences: Sequence[IndexedSentence]) -> tuple[list[int], list[int]]:
        """Return the id of each token, and the rows of new words that get a vector."""
        known = self._words
        ids: list[int] = []
        new_rows: list[int] = []
        new_lines: list[str] = []
        for sentence in sentences:
            for token in sentence.tokens:
                number = known.get(token)
                if number is None:
                    number = known[token] = len(known)
                    if not self._chosen:
                        new_rows.append(len(ids))
                    elif token.casefold() in self._chosen:
                        new_rows.append(len(ids))
                        self._chosen_ids.add(number)
                    new_lines.append(f"{escape_token(token)}\n")
                ids.append(number)
        if new_lines:
            self._files[WORDS].append("".join(new_lines).encode())
        return ids, new_rows

    def _find_rows(self, ids: Sequence[int]) -> slice | list[int]:
        """Return which tokens get vectors: all, or those of the words that are indexed."""
        if not self._chosen:
            return slice(None)
        return [row for row, number in enumerate(ids) if number in self._chosen_ids]

    def _number_tags(self, sentences: Sequence[IndexedSentence]) -> list[int]:
        numbers: list[int] = []
        for sentence in sentences:
            if sentence.tags is None:
                numbers += [0] * len(sentence.tokens)
            else:
                numbers += [self._tags.setdefault(tag, len(self._tags)) for tag in sentence.tags]
        if len(self._tags) > MAX_TAGS:
            raise DataError(
                f"the text has more than {MAX_TAGS:,} different tags; check that its fourth column "
                "has parts of speech"
            )
        return numbers

    def _place(self, sentences: Sequence[IndexedSentence]) -> NDArray[np.int64]:
        """Return the rows of the table of sentences."""
        source = len(self.state.sources) - 1
        first = self.state.num_tokens
        rows = []
        for sentence in sentences:
            rows.append((first, sentence.line, sentence.document, source))
            first += len(sentence.tokens)
        return np.array(rows, "<i8")


def _join_halves(parts: Sequence[NDArray[np.float32]], *, num_rows: int) -> torch.Tensor:
    """Return (tokens, D) arrays as one in f16; converting each is faster than joining all."""
    halves = torch.empty((num_rows, parts[0].shape[-1]), dtype=torch.float16)
    start = 0
    for part in parts:
        halves[start : start + len(part)].copy_(torch.from_numpy(part))
        start += len(part)
    return halves


def read_words(folder: Path, state: IndexState) -> list[str]:
    """Return the distinct words of an index, by their ids."""
    path = folder / WORDS
    try:
        with path.open("rb") as file:
            lines = file.read(state.files[WORDS].num_bytes).decode().split("\n")[:-1]
        words = [unescape_token(line) for line in lines]
    except (ValueError, KeyError) as error:
        raise damaged(f"{path} is damaged ({error!s:.100})") from None
    except OSError as error:
        raise damaged(f"cannot read {path} ({error.strerror})") from None
    if len(words) != state.num_words or len(set(words)) != len(words):
        raise damaged(f"{path} is damaged (it should have {state.num_words:,} different words)")
    return words


def _write_array(path: Path, array: NDArray[np.int64]) -> FileFacts:
    with replace_file(path) as temporary:
        array.tofile(temporary)
    return FileFacts(num_bytes=array.nbytes, crc32=compute_crc32(path, num_bytes=array.nbytes))
