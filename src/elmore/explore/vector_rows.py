"""Which row of a layer belongs to which token; in an index of some words, most have none.

Shapes: N tokens, V distinct words.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmore.errors import DataError
from elmore.explore.index_state import WORDS, IndexState, damaged
from elmore.explore.indexed_text import IndexedText, Numbers


class VectorRows:
    """Finds the rows of tokens in layer 0, which has one per word, and in the others."""

    def __init__(self, folder: Path, state: IndexState, text: IndexedText) -> None:
        self._folder = folder
        self._text = text
        self._chosen = state.settings.words
        self.numbers: Numbers = np.arange(state.num_tokens)  # of the tokens that have vectors
        num_words = state.num_words
        if self._chosen:
            chosen = set(self._chosen)
            has_vector = np.array([word.casefold() in chosen for word in text.words], bool)
            num_words = int(has_vector.sum())
            self._word_rows = np.where(has_vector, np.cumsum(has_vector) - 1, -1)
            is_kept = has_vector[text.tokens]
            self._token_rows = np.where(is_kept, np.cumsum(is_kept) - 1, -1)
            self.numbers = np.flatnonzero(is_kept)
        counts = (state.num_words_with_vectors, state.num_tokens_with_vectors)
        if counts != (num_words, len(self.numbers)):
            raise damaged(f"{folder / WORDS} is damaged (it does not match the vectors)")

    def find(self, numbers: Numbers, layer: int) -> NDArray[np.integer]:
        """Return the rows of tokens; raise an error for a token without a vector."""
        words = self._text.tokens[numbers]
        if not self._chosen:
            return numbers if layer else words
        rows = self._token_rows[numbers] if layer else self._word_rows[words]
        if (rows < 0).any():
            word = self._text.words[int(words[(rows < 0).argmax()])]
            raise DataError(
                f"the index has no vectors of {word!r:.60}; it is an index of the words "
                f"{', '.join(self._chosen):.200}"
            )
        return rows
