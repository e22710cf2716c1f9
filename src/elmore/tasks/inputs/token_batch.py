"""Padded batches of sentences for task networks.

Shapes: B sentences, T tokens in the longest, K distinct tokens, C characters, L layers, D a layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from elmore.text.characters import ByteAlphabet

# The special rows of the word vectors.
NO_TOKEN, UNKNOWN = 0, 1
NUM_SPECIAL_ROWS = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenBatch:
    """The features of each token; zero at padding."""

    words: Tensor  # (B, T) int64, rows of the word vectors
    spellings: Tensor  # (K, C) int64, characters of the distinct tokens
    spelled: Tensor  # (B, T) int64, rows of `spellings`
    lengths: Tensor  # (B,) int64
    layers: Tensor | None = None  # (L, B, T, D) of the biLM, if there is one

    @property
    def mask(self) -> Tensor:
        """(B, T) bool, True where there is a token."""
        positions = torch.arange(self.words.shape[1], device=self.words.device)
        return positions < self.lengths[:, None]

    def with_layers(self, layers: Tensor | None) -> "TokenBatch":
        """Return the same tokens with a biLM's layers."""
        return replace(self, layers=layers)


def copy_to(value: Any, device: torch.device | str) -> Any:
    """Copy a tensor, or the tensors of a dataclass, to a device; None stays None."""
    if value is None:
        return None
    if isinstance(value, Tensor):
        return value.to(device)
    copies = {field.name: copy_to(getattr(value, field.name), device) for field in fields(value)}
    return replace(value, **copies)


class TokenBatcher:
    """Converts sentences to batches of word rows and characters."""

    def __init__(self, *, words: Sequence[str], max_chars: int = 30) -> None:
        self._alphabet = ByteAlphabet(max_chars=max_chars)
        # In reverse, so that the first row of a repeated word counts.
        numbered = reversed(list(enumerate(words, start=NUM_SPECIAL_ROWS)))
        self._rows = {word: row for row, word in numbered}

    def find_row(self, token: str) -> int:
        """Return the row of a token, or of its lowercase form, or UNKNOWN."""
        row = self._rows.get(token)
        return self._rows.get(token.lower(), UNKNOWN) if row is None else row

    def make(self, sentences: Sequence[Sequence[str]]) -> TokenBatch:
        """Make a batch of sentences, none of them empty."""
        distinct = {token: 0 for sentence in sentences for token in sentence}
        indices = {token: index for index, token in enumerate(distinct)}
        lengths = torch.tensor([len(sentence) for sentence in sentences])
        shape = (len(sentences), int(lengths.max()))
        words = torch.full(shape, NO_TOKEN)
        spelled = torch.zeros(shape, dtype=torch.int64)
        for row, sentence in enumerate(sentences):
            words[row, : len(sentence)] = torch.tensor([self.find_row(token) for token in sentence])
            spelled[row, : len(sentence)] = torch.tensor([indices[token] for token in sentence])
        spellings = torch.from_numpy(self._alphabet.spell_all(list(distinct)))
        return TokenBatch(words=words, spellings=spellings, spelled=spelled, lengths=lengths)
