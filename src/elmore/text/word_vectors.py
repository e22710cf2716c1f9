"""Static word vectors, one for each word whatever its context: what a biLM is compared with.

Shapes: V words, D numbers of a vector, T tokens.
"""

import zipfile
import zlib
from array import array
from collections.abc import Sequence
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
    """Words and their vectors, row by row; of a word given twice the first row counts."""

    words: tuple[str, ...]
    vectors: Array  # (V, D)

    @property
    def vector_dim(self) -> int:
        """Width of a vector."""
        return int(self.vectors.shape[1])

    def find(self, token: str) -> int | None:
        """Return the row of a token as it is spelled, or else in lower case; None if unknown."""
        row = self._rows.get(token)
        return self._rows.get(token.lower()) if row is None else row

    def embed(self, tokens: Sequence[str]) -> Array:
        """Return (T, D), zeros for unknown tokens."""
        found = np.zeros((len(tokens), self.vector_dim), dtype=np.float32)
        for place, token in enumerate(tokens):
            row = self.find(token)
            if row is not None:
                found[place] = self.vectors[row]
        return found

    @cached_property
    def _rows(self) -> dict[str, int]:
        # Backwards, so that the first of equal words stays.
        return {word: row for row, word in reversed(list(enumerate(self.words)))}


def read_word_vectors(path: Path) -> WordVectors:
    """Read GloVe's text form (.gz, .xz, .bz2, .zst too), or the arrays of an .npz file."""
    return _read_npz(path) if path.suffix.lower() == ".npz" else _read_text(path)


def _read_text(path: Path) -> WordVectors:
    words: list[str] = []
    values = array("f")
    vector_dim = 0
    # A tokenized text is split the same way, and its reader tells a wrong encoding or a damaged
    # archive.
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
                f"{path}, line {number}: wanted a word and {vector_dim or 'some'} numbers, got "
                f"{' '.join(columns)[:40]!r}; mend the line, or give a file of word vectors"
            )
        if not np.isfinite(row).all():
            raise DataError(
                f"{path}, line {number}: the vector of {columns[0]!r} has numbers that are not "
                "finite; remove the line"
            )
        words.append(" ".join(columns[:-vector_dim]))  # some of GloVe's words have spaces in them
        values.frombytes(row.tobytes())
    if not words:
        raise DataError(f"{path} has no word vectors; give lines of a word and its numbers")
    vectors = np.frombuffer(values, dtype=np.float32).reshape(len(words), vector_dim)
    return WordVectors(words=tuple(words), vectors=vectors)


def _is_header(columns: list[str]) -> bool:
    """Tell the first line of word2vec's and fastText's files: how many words, how wide."""
    return len(columns) == 2 and all(column.isdecimal() for column in columns)


def _read_npz(path: Path) -> WordVectors:
    try:
        with open_text(path) as (file, _), np.load(file, allow_pickle=False) as arrays:
            words, vectors = arrays["words"], arrays["vectors"]
    except KeyError:
        raise DataError(
            f"{path} lacks an array 'words' or 'vectors'; save both with numpy.savez"
        ) from None
    # TypeError: a single array, which numpy gives in place of an archive.
    except (OSError, EOFError, TypeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        # numpy takes what is no archive for a pickle, and says so.
        reason = "it is no .npz" if "pickle" in str(error) else str(error)
        raise DataError(
            f"{path} cannot be read ({reason}); save the words as an array of strings and the "
            "vectors as one of numbers with numpy.savez"
        ) from None
    are_words = words.ndim == 1 and words.dtype.kind == "U"
    are_vectors = vectors.ndim == 2 and vectors.dtype.kind == "f" and vectors.size > 0
    if not are_words or not are_vectors or len(words) != len(vectors):
        raise DataError(
            f"{path}: wanted V strings in 'words' and (V, D) floats in 'vectors', got "
            f"{words.dtype} {words.shape} and {vectors.dtype} {vectors.shape}; save them anew"
        )
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
        vectors = vectors.astype(np.float32)
    if not np.isfinite(vectors).all():
        row = int(np.argmin(np.isfinite(vectors).all(axis=1)))
        raise DataError(
            f"{path}: the vector of {str(words[row])!r} (row {row}) has numbers that are not "
            "finite; leave it out"
        )
    return WordVectors(words=tuple(words.tolist()), vectors=vectors)
