"""Batches for the network: ids of the distinct tokens, and the index of each token among them.

Shapes: B sentences, N tokens in total (with markers), U distinct tokens, C characters.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from elmore.errors import DataError
from elmore.text.characters import Alphabet
from elmore.text.tokens import parse_sentence
from elmore.text.vocabulary import WordLookup

Tokens = Sequence[str]
Document = Sequence[Tokens]

# In every batch, the markers are the first two distinct tokens.
BEGIN, END = 0, 1
NUM_MARKERS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenIds:
    """Distinct tokens, ready for the token encoder."""

    char_ids: Tensor | None  # (U, C) int64
    word_ids: Tensor | None  # (U,) int64

    def to(self, device: torch.device | str) -> "TokenIds":
        """Copy to a device."""
        return TokenIds(
            char_ids=None if self.char_ids is None else self.char_ids.to(device),
            word_ids=None if self.word_ids is None else self.word_ids.to(device),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Sentences one after another, with markers and without padding."""

    tokens: TokenIds
    positions: Tensor  # (N,) int64, each token's index among the distinct tokens
    lengths: Tensor  # (B,) int64, always on the CPU: they control the computation

    def to(self, device: torch.device | str) -> "Batch":
        """Copy to a device."""
        return Batch(
            tokens=self.tokens.to(device),
            positions=self.positions.to(device),
            lengths=self.lengths,
        )


class TokenSpeller(Protocol):
    """Converts tokens to the ids that the token encoder reads."""

    def spell(self, tokens: Iterable[str], *, with_markers: bool = False) -> TokenIds:
        """Return the ids of `tokens`, preceded by the two markers if `with_markers`."""


class Speller:
    """Convert tokens to char ids, word ids or both."""

    def __init__(self, *, alphabet: Alphabet | None, words: WordLookup | None) -> None:
        self.alphabet = alphabet
        self.words = words

    def batch(self, sentences: Sequence[Sequence[str]]) -> Batch:
        """Convert tokenized sentences to a batch on the CPU."""
        return make_batch(sentences, self)

    def spell(self, tokens: Iterable[str], *, with_markers: bool = False) -> TokenIds:
        """Return the ids of `tokens`, preceded by the two markers if `with_markers`."""
        tokens = list(tokens)
        return TokenIds(
            char_ids=self._char_ids(tokens, with_markers=with_markers),
            word_ids=self._word_ids(tokens, with_markers=with_markers),
        )

    def _char_ids(self, tokens: list[str], *, with_markers: bool) -> Tensor | None:
        if self.alphabet is None:
            return None
        ids = self.alphabet.spell_all(tokens)
        if with_markers:
            ids = np.vstack([self.alphabet.spell_begin(), self.alphabet.spell_end(), ids])
        return torch.from_numpy(ids)

    def _word_ids(self, tokens: list[str], *, with_markers: bool) -> Tensor | None:
        if self.words is None:
            return None
        markers = [self.words.begin_id, self.words.end_id] if with_markers else []
        ids = markers + [self.words.find(token) for token in tokens]
        return torch.tensor(ids, dtype=torch.int64)


def check_tokens(sentences: Sequence[Sequence[str]]) -> None:
    """Raise an error unless these are tokenized sentences."""
    for sentence in sentences:
        refuse_string(sentence)
        parse_sentence(sentence)


def make_batch(sentences: Sequence[Sequence[str]], speller: TokenSpeller) -> Batch:
    """Put markers around each sentence and spell each distinct token once."""
    check_tokens(sentences)
    distinct = dict.fromkeys(chain.from_iterable(sentences))
    indices = {token: index for index, token in enumerate(distinct, start=NUM_MARKERS)}
    lengths = [len(sentence) + NUM_MARKERS for sentence in sentences]
    return Batch(
        tokens=speller.spell(distinct, with_markers=True),
        positions=place_tokens(sentences, indices),
        lengths=torch.tensor(lengths, dtype=torch.int64),
    )


def place_tokens(sentences: Sequence[Sequence[str]], indices: Mapping[str, int]) -> Tensor:
    """Return the (N,) index of each token, with markers around every sentence."""
    positions: list[int] = []
    for sentence in sentences:
        positions.append(BEGIN)
        positions.extend(map(indices.__getitem__, sentence))
        positions.append(END)
    # Five times faster than torch.tensor.
    return torch.from_numpy(np.fromiter(positions, np.int64, count=len(positions)))


def refuse_string(sentence: Sequence[str]) -> None:
    """Raise an error for a string instead of tokens; it would be read letter by letter."""
    if isinstance(sentence, str | bytes):
        raise DataError(
            f"expected a list of tokens, got the string {sentence!r:.40}; split it first"
        )
