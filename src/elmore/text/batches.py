"""Batches for the network: ids of the distinct tokens, and the index of each token among them.

Shapes: B sentences, N tokens in total (with markers), U distinct tokens, C characters.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

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


class Speller:
    """Convert tokens to char ids, word ids or both."""

    def __init__(self, *, alphabet: Alphabet | None, words: WordLookup | None) -> None:
        self.alphabet = alphabet
        self.words = words

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


def make_batch(sentences: Sequence[Sequence[str]], speller: Speller) -> Batch:
    """Put markers around each sentence and spell each distinct token once."""
    for sentence in sentences:
        refuse_string(sentence)
        parse_sentence(sentence)  # raises an error unless these are tokens
    distinct = dict.fromkeys(chain.from_iterable(sentences))
    indices = {token: index for index, token in enumerate(distinct, start=NUM_MARKERS)}
    lengths = [len(sentence) + NUM_MARKERS for sentence in sentences]
    return Batch(
        tokens=speller.spell(distinct, with_markers=True),
        positions=place_tokens(sentences, indices),
        lengths=torch.tensor(lengths, dtype=torch.int64),
    )


def make_batch_of_ids(char_ids: Tensor, speller: Speller) -> Batch:
    """Make a batch of padded (B, T, C) character ids from AllenNLP's `batch_to_ids`.

    These ids are 1 higher than the alphabet's, because 0 is padding. Markers are added around each
    sentence.
    """
    if speller.alphabet is None or speller.words is not None:
        raise DataError("this model needs words, not only character ids; give lists of tokens")
    width = speller.alphabet.max_chars
    is_integer = char_ids.dtype in (torch.uint8, torch.int16, torch.int32, torch.int64)
    if char_ids.dim() != 3 or char_ids.shape[2] != width or not is_integer:
        raise DataError(
            f"expected integer character ids of shape (sentences, tokens, {width}), got "
            f"{char_ids.dtype} of shape {tuple(char_ids.shape)}"
        )
    ids = char_ids.detach().cpu()
    num_units = speller.alphabet.num_units
    if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) <= num_units:
        raise DataError(
            f"character ids must be from 0 (padding) to {num_units}, got {int(ids.min())} to "
            f"{int(ids.max())}; use the output of batch_to_ids"
        )
    mask = (ids > 0).any(dim=2)
    lengths = mask.sum(dim=1)
    if not torch.equal(mask, torch.arange(ids.shape[1]) < lengths[:, None]):
        raise DataError("there is a token after padding; put padding at the end of a sentence")
    distinct, positions = torch.unique(ids[mask] - 1, dim=0, return_inverse=True)
    if len(distinct) and int(distinct.min()) < 0:
        raise DataError(
            f"character ids inside a token must be from 1 to {num_units}, got 0; use the output of "
            "batch_to_ids"
        )
    markers = speller.spell([], with_markers=True).char_ids
    assert markers is not None
    sentences = (positions + NUM_MARKERS).split(lengths.tolist())
    begin, end = torch.tensor([BEGIN]), torch.tensor([END])
    return Batch(
        tokens=TokenIds(char_ids=torch.cat([markers, distinct.to(markers)]), word_ids=None),
        positions=torch.cat([torch.cat([begin, sentence, end]) for sentence in sentences])
        if sentences
        else positions,
        lengths=lengths + NUM_MARKERS,
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
