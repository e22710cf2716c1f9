"""Static word vectors, such as GloVe: the baseline that a biLM is compared with.

Shapes: V words, D numbers per vector, T tokens.
"""

import zipfile
import zlib
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmore.errors import DataError
from elmore.text.files import TextForm, open_text, read_sentences

Array = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class WordVectors:
    """Words and their vectors, one per row; if a word occurs twice, its first row is used."""

    words: tuple[str, ...]
    vectors: Array  # (V, D)

    @property
    def vector_dim(self) -> int:
        """Width of a vector."""
        return int(self.vectors.shape[1])

    def select(self, is_wanted: Callable[[str], bool]) -> "WordVectors":
        """Return the words for which `is_wanted` is true."""
        rows = [row for row, word in enumerate(self.words) if is_wanted(word)]
        words = tuple(self.words[row] for row in rows)
        return WordVectors(words=words, vectors=self.vectors[rows])

    def find(self, token: str) -> int | None:
        """Return the row of a token, or of its lower-case form; None if neither is known."""
        row = self._rows.get(token)
        return self._rows.get(token.lower()) if row is None else row

    def embed(self, tokens: Sequence[str]) -> Array:
        """Return (T, D), zeros for unknown tokens."""
        found = np.zeros((len(tokens), self.vector_dim), dtype=np.float32)
        for position, token in enumerate(tokens):
            row = self.find(token)
            if row is not None:
                found[position] = self.vectors[row]
        return found

    @cached_property
    def _rows(self) -> dict[str, int]:
        # In reverse, so that the first of equal words wins.
        return {word: row for row, word in reversed(list(enumerate(self.words)))}


def read_word_vectors(path: Path) -> WordVectors:
    """Read GloVe's text format (also .gz, .xz, .bz2, .zst) or the arrays of an .npz file."""
    return _read_npz(path) if path.suffix.lower() == ".npz" else _read_text(path)


def _read_text(path: Path) -> WordVectors:
    words: list[str] = []
    values = array("f")
    vector_dim = 0
    # Tokenized text is split the same way, and its reader reports wrong encodings and damaged
    # archives.
    for number, columns in enumerate(read_sentences(path, form=TextForm.TOKENIZED), start=1):
        if not columns or (number == 1 and _is_header(columns)):
            continue
        vector_dim = vector_dim or len(columns) - 1
        try:
            row = np.array(columns[-vector_dim:], dtype=np.float32)
        except ValueError:
            row = np.empty(0, dtype=np.float32)
        if not vector_dim or len(columns) <= vector_dim or len(row) != vector_dim:
            raise DataError(
                f"{path}, line {number}: expected a word and {vector_dim or 'some'} numbers, got "
                f"{' '.join(columns)[:40]!r}; fix the line, or give a file of word vectors"
            )
        if not np.isfinite(row).all():
            raise DataError(
                f"{path}, line {number}: the vector of {columns[0]!r} has numbers that are not "
                "finite; remove the line"
            )
        words.append(" ".join(columns[:-vector_dim]))  # some GloVe words contain spaces
        values.frombytes(row.tobytes())
    if not words:
        raise DataError(f"{path} has no word vectors; expected lines of a word and its numbers")
    vectors = np.frombuffer(values, dtype=np.float32).reshape(len(words), vector_dim)
    return WordVectors(words=tuple(words), vectors=vectors)


def _is_header(columns: list[str]) -> bool:
    """Return whether this is the first line of a word2vec or fastText file: counts only."""
    return len(columns) == 2 and all(column.isdecimal() for column in columns)


def _read_npz(path: Path) -> WordVectors:
    try:
        with open_text(path) as (file, _), np.load(file, allow_pickle=False) as arrays:
            words, vectors = arrays["words"], arrays["vectors"]
    except KeyError:
        raise DataError(
            f"{path} lacks an array 'words' or 'vectors'; save both with numpy.savez"
        ) from None
    # TypeError: numpy loaded a single array, not an archive.
    except (OSError, EOFError, TypeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        # If a file is not an archive, numpy assumes a pickle and says so.
        reason = "it is not an .npz file" if "pickle" in str(error) else str(error)
        raise DataError(
            f"cannot read {path} ({reason}); save an array of strings 'words' and an array of "
            "floats 'vectors' with numpy.savez"
        ) from None
    are_words = words.ndim == 1 and words.dtype.kind == "U"
    are_vectors = vectors.ndim == 2 and vectors.dtype.kind == "f" and vectors.size > 0
    if not are_words or not are_vectors or len(words) != len(vectors):
        raise DataError(
            f"{path}: expected V strings in 'words' and (V, D) floats in 'vectors', got "
            f"{words.dtype} {words.shape} and {vectors.dtype} {vectors.shape}; save them again"
        )
    with np.errstate(over="ignore"):  # overflow gives inf, which is rejected below
        vectors = vectors.astype(np.float32)
    if not np.isfinite(vectors).all():
        row = int(np.argmin(np.isfinite(vectors).all(axis=1)))
        raise DataError(
            f"{path}: the vector of {str(words[row])!r} (row {row}) has numbers that are not "
            "finite; remove it"
        )
    return WordVectors(words=tuple(words.tolist()), vectors=vectors)
