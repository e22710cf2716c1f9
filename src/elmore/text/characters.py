"""Spell a token as numbers: UTF-8 bytes as bilm-tf, or Unicode characters as ELMoForManyLangs.

Ids follow the published weights to the byte; changing them makes those weights unusable.
"""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from elmore.errors import ModelError

Ids = NDArray[np.int64]

BEGIN_SENTENCE, END_SENTENCE, BEGIN_TOKEN, END_TOKEN, FILLER = 256, 257, 258, 259, 260
NUM_BYTE_UNITS = 261


class Alphabet(Protocol):
    """Spells tokens, and the two marks around a sentence, in `max_chars` ids each."""

    max_chars: int

    def spell(self, token: str) -> Ids:
        """Return the ids of a token; what does not fit is cut."""

    def spell_begin(self) -> Ids:
        """Return the ids of the mark before a sentence."""

    def spell_end(self) -> Ids:
        """Return the ids of the mark after a sentence."""


class ByteAlphabet:
    """One id a UTF-8 byte; no list to keep, so no token is unknown.

    A lone surrogate has no UTF-8 form and is left out, as the published models' programs do.
    The tokens `<S>` and `</S>` are the marks of a sentence, as they are there.

    >>> ByteAlphabet(max_chars=7).spell("hé!!!").tolist()
    [258, 104, 195, 169, 33, 33, 259]
    >>> ByteAlphabet(max_chars=4).spell("hé").tolist()
    [258, 104, 259, 260]
    """

    def __init__(self, *, max_chars: int, splits_characters: bool = False) -> None:
        self.max_chars = max_chars
        self.splits_characters = splits_characters

    def spell(self, token: str) -> Ids:
        """Return the ids of a token; what does not fit is cut."""
        if token == "<S>":
            return self.spell_begin()
        if token == "</S>":
            return self.spell_end()
        room = self.max_chars - 2
        content = token.encode("utf-8", "ignore")
        if len(content) > room:
            content = content[:room]
            if not self.splits_characters:
                content = content.decode("utf-8", "ignore").encode("utf-8")
        return self._frame(np.frombuffer(content, dtype=np.uint8))

    def spell_begin(self) -> Ids:
        """Return the ids of the mark before a sentence."""
        return self._frame(np.array([BEGIN_SENTENCE]))

    def spell_end(self) -> Ids:
        """Return the ids of the mark after a sentence."""
        return self._frame(np.array([END_SENTENCE]))

    def _frame(self, content: NDArray[np.integer]) -> Ids:
        ids = np.full(self.max_chars, FILLER, dtype=np.int64)
        ids[0] = BEGIN_TOKEN
        ids[1 : 1 + len(content)] = content
        ids[1 + len(content)] = END_TOKEN
        return ids


class CharacterAlphabet:
    """One id a Unicode character of a list; a character outside it is `<oov>`.

    The marks around a token are swapped: `<eow>` begins it and `<bow>` ends it. The published
    models were trained so. The tokens `<bos>` and `<eos>` are the marks of a sentence.
    """

    def __init__(self, ids: Mapping[str, int], *, max_chars: int) -> None:
        for needed in ("<bow>", "<eow>", "<oov>", "<pad>", "<bos>", "<eos>"):
            if needed not in ids:
                raise ModelError(f"the model's list of characters lacks {needed!r}; get it again")
        self.max_chars = max_chars
        self._ids = dict(ids)
        self._unknown = ids["<oov>"]

    def spell(self, token: str) -> Ids:
        """Return the ids of a token; what does not fit is cut."""
        if token in ("<bos>", "<eos>"):
            return self._frame([self._ids[token]])
        return self._frame([self._ids.get(c, self._unknown) for c in token[: self.max_chars - 2]])

    def spell_begin(self) -> Ids:
        """Return the ids of the mark before a sentence."""
        return self._frame([self._ids["<bos>"]])

    def spell_end(self) -> Ids:
        """Return the ids of the mark after a sentence."""
        return self._frame([self._ids["<eos>"]])

    def _frame(self, content: list[int]) -> Ids:
        ids = np.full(self.max_chars, self._ids["<pad>"], dtype=np.int64)
        ids[0] = self._ids["<eow>"]
        ids[1 : 1 + len(content)] = content
        ids[1 + len(content)] = self._ids["<bow>"]
        return ids
