"""Convert tokens to char ids: UTF-8 bytes (bilm-tf) or Unicode characters (ELMoForManyLangs).

Published weights depend on every id, so the ids must not change.
Shapes: U tokens, C characters.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from elmore.errors import ModelError

Ids = NDArray[np.int64]

BEGIN_SENTENCE, END_SENTENCE, BEGIN_TOKEN, END_TOKEN, FILLER = 256, 257, 258, 259, 260
NUM_BYTE_UNITS = 261
SENTENCE_MARKS = {"<S>": BEGIN_SENTENCE, "</S>": END_SENTENCE}
# Entries that a character list must contain in addition to the characters.
CHARACTER_MARKS = ("<oov>", "<bos>", "<eos>", "<bow>", "<eow>", "<pad>")


class Alphabet(Protocol):
    """Converts tokens, and the two sentence markers, to `max_chars` ids each."""

    max_chars: int
    num_units: int

    def spell(self, token: str) -> Ids:
        """Return the char ids of a token, truncated to `max_chars`."""

    def spell_all(self, tokens: Sequence[str]) -> Ids:
        """Return the (U, C) char ids of many tokens; ten times faster than one by one."""

    def spell_begin(self) -> Ids:
        """Return the ids of the marker before a sentence."""

    def spell_end(self) -> Ids:
        """Return the ids of the marker after a sentence."""


class ByteAlphabet:
    """One id per UTF-8 byte; there is no character list, so no token is unknown.

    As in bilm-tf, lone surrogates are dropped because they have no UTF-8 form, and the tokens
    `<S>` and `</S>` are sentence markers.

    >>> ByteAlphabet(max_chars=7).spell("hé!!!").tolist()
    [258, 104, 195, 169, 33, 33, 259]
    >>> ByteAlphabet(max_chars=4).spell("hé").tolist()
    [258, 104, 259, 260]
    """

    def __init__(self, *, max_chars: int, splits_characters: bool = False) -> None:
        self.max_chars = max_chars
        self.num_units = NUM_BYTE_UNITS
        self.splits_characters = splits_characters

    def spell(self, token: str) -> Ids:
        """Return the char ids of a token, truncated to `max_chars`."""
        return self.spell_all([token])[0]

    def spell_all(self, tokens: Sequence[str]) -> Ids:
        """Return the (U, C) char ids of many tokens; ten times faster than one by one."""
        room = self.max_chars - 2
        contents = [token.encode("utf-8", "ignore") for token in tokens]
        contents = [text if len(text) <= room else self._cut(text, room) for text in contents]
        markers = [index for index, token in enumerate(tokens) if token in SENTENCE_MARKS]
        for index in markers:
            contents[index] = b"?"  # one placeholder byte; its id is set below
        ids = _frame(
            np.frombuffer(b"".join(contents), dtype=np.uint8),
            [len(content) for content in contents],
            max_chars=self.max_chars,
            begin=BEGIN_TOKEN,
            end=END_TOKEN,
            filler=FILLER,
        )
        ids[markers, 1] = [SENTENCE_MARKS[tokens[index]] for index in markers]
        return ids

    def spell_begin(self) -> Ids:
        """Return the ids of the marker before a sentence."""
        return self.spell("<S>")

    def spell_end(self) -> Ids:
        """Return the ids of the marker after a sentence."""
        return self.spell("</S>")

    def _cut(self, content: bytes, room: int) -> bytes:
        content = content[:room]
        if self.splits_characters:
            return content
        return content.decode("utf-8", "ignore").encode("utf-8")


class CharacterAlphabet:
    """One id per Unicode character in a list; other characters become `<oov>`.

    The marks around a token are swapped: it starts with `<eow>` and ends with `<bow>`, because
    the published models were trained that way. The tokens `<bos>` and `<eos>` are sentence markers.
    """

    def __init__(self, ids: Mapping[str, int], *, max_chars: int) -> None:
        for needed in CHARACTER_MARKS:
            if needed not in ids:
                raise ModelError(f"the model's character list lacks {needed!r}; download it again")
        self.max_chars = max_chars
        self.num_units = len(ids)
        self._ids = dict(ids)
        self._unknown = ids["<oov>"]

    def spell(self, token: str) -> Ids:
        """Return the char ids of a token, truncated to `max_chars`."""
        return self.spell_all([token])[0]

    def spell_all(self, tokens: Sequence[str]) -> Ids:
        """Return the (U, C) char ids of many tokens; ten times faster than one by one."""
        room = self.max_chars - 2
        contents = [(token,) if token in ("<bos>", "<eos>") else token[:room] for token in tokens]
        find, unknown = self._ids.get, self._unknown
        return _frame(
            np.array([find(unit, unknown) for units in contents for unit in units], np.int64),
            [len(units) for units in contents],
            max_chars=self.max_chars,
            begin=self._ids["<eow>"],
            end=self._ids["<bow>"],
            filler=self._ids["<pad>"],
        )

    def spell_begin(self) -> Ids:
        """Return the ids of the marker before a sentence."""
        return self.spell("<bos>")

    def spell_end(self) -> Ids:
        """Return the ids of the marker after a sentence."""
        return self.spell("<eos>")


def _frame(
    content: NDArray[np.integer],
    lengths: Sequence[int],
    *,
    max_chars: int,
    begin: int,
    end: int,
    filler: int,
) -> Ids:
    """Split `content` into tokens of these lengths and put marks around each; return (U, C)."""
    num_units = np.array(lengths, np.int64)
    ids = np.full((len(lengths), max_chars), filler, np.int64)
    ids[:, 0] = begin
    ids[:, 1:-1][np.arange(max_chars - 2) < num_units[:, None]] = content
    ids[np.arange(len(lengths)), 1 + num_units] = end
    return ids
