"""Padded character ids, as made by AllenNLP's `batch_to_ids` and bilm-tf's `Batcher`.

They are 1 higher than the alphabet's ids, because 0 is padding, or "no character" inside a token.
A spelled token is a string whose code points are these ids, so that it can be cached like a token.

Shapes: B sentences, T tokens, U distinct tokens, C characters.
"""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from elmore.errors import DataError
from elmore.text.batches import Speller, TokenIds


class SpelledTokenReader:
    """Reads padded character ids for a model; a `TokenSpeller` of the tokens that it returns."""

    def __init__(self, speller: Speller) -> None:
        if speller.alphabet is None or speller.words is not None:
            raise DataError("this model needs words, not only character ids; give lists of tokens")
        self._speller = speller
        self.alphabet = speller.alphabet

    def split(self, char_ids: Tensor) -> list[list[str]]:
        """Return the spelled tokens of each sentence in (B, T, C) ids."""
        width = self.alphabet.max_chars
        is_integer = char_ids.dtype in (torch.uint8, torch.int16, torch.int32, torch.int64)
        if char_ids.dim() != 3 or char_ids.shape[2] != width or not is_integer:
            raise DataError(
                f"expected integer character ids of shape (sentences, tokens, {width}), got "
                f"{char_ids.dtype} of shape {tuple(char_ids.shape)}"
            )
        ids = char_ids.detach().cpu().numpy()
        num_units = self.alphabet.num_units
        if ids.size and not 0 <= ids.min() <= ids.max() <= num_units:
            raise DataError(
                f"character ids must be from 0 (padding) to {num_units}, got {ids.min()} to "
                f"{ids.max()}; use the output of batch_to_ids"
            )
        mask = ids.any(axis=2)
        lengths = mask.sum(axis=1)
        if (mask != (np.arange(ids.shape[1]) < lengths[:, None])).any():
            raise DataError("there is a token after padding; put padding at the end of a sentence")
        rows = np.ascontiguousarray(ids, dtype="<u4").view(f"<U{width}")[..., 0].tolist()
        return [row[:length] for row, length in zip(rows, lengths.tolist(), strict=True)]

    def spell(self, tokens: Iterable[str], *, with_markers: bool = False) -> TokenIds:
        """Return the ids of spelled tokens, preceded by the two markers if `with_markers`."""
        width = self.alphabet.max_chars
        points = np.array(list(tokens), dtype=f"<U{width}").view("<u4").reshape(-1, width)
        ids = points.astype(np.int64) - 1
        ids[ids < 0] = self.alphabet.num_units
        if with_markers:
            ids = np.vstack([self.alphabet.spell_begin(), self.alphabet.spell_end(), ids])
        return TokenIds(char_ids=torch.from_numpy(ids), word_ids=None)
