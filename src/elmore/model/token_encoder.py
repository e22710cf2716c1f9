"""Encode each token without context: character CNN, highway layers, word vector, projection.

Shapes: U distinct tokens, C characters, E char dim, F filters, D the token vector.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elmore.model.char_table import (
    KeptTables,
    count_positions,
    make_tables,
    number_distinct,
    strongest_responses,
)
from elmore.model.rows import apply_linear, extend_rows, round_up, sigmoid

# The tables for all bytes take 13 MB in the original model. For larger alphabets, each call makes
# tables for the units that it needs.
MAX_KEPT_UNITS = 512


class CharacterCNN(nn.Module):
    """A CNN over characters, max-pooled over each token (Kim et al., 2016).

    The id after the last unit means "no character"; its vector is zero.
    """

    _kept: KeptTables | None = None

    def __init__(
        self,
        *,
        num_units: int,
        embedding_dim: int,
        filters: Sequence[tuple[int, int]],
        uses_tanh: bool = False,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_units, embedding_dim)
        self.filters = nn.ModuleList(
            nn.Linear(width * embedding_dim, number) for width, number in filters
        )
        self.widths = [width for width, _ in filters]
        self.activate_ = torch.tanh_ if uses_tanh else torch.relu_

    def forward(self, char_ids: Tensor) -> Tensor:
        """Reduce (U, C) character ids to (U, F)."""
        check_ids(char_ids, num_units=self.embedding.num_embeddings)
        num_positions = count_positions(char_ids)
        unit_ids, tables = self._look_up(char_ids)
        strongest = strongest_responses(unit_ids, num_positions, tables)
        # The bias and the activation are monotonic, so they are applied after the maximum.
        return self.activate_(strongest.add_(self.joined_bias()))

    @property
    def has_few_units(self) -> bool:
        """Whether tables of all units are small enough to be kept."""
        return self.embedding.num_embeddings <= MAX_KEPT_UNITS

    @property
    def can_be_kept(self) -> bool:
        """Whether a copy for inference may compute the same in another way."""
        hooks = [self._forward_hooks, self._forward_pre_hooks]
        return type(self) is CharacterCNN and self.has_few_units and not any(hooks)

    def joined_bias(self) -> Tensor:
        """Return the (F,) biases of all filters."""
        return torch.cat([convolve.bias for convolve in self._convolutions()])

    @torch.no_grad()
    def make_all_tables(self) -> list[Tensor]:
        """Return the tables of all units, the last one for "no character"."""
        return make_tables(
            extend_rows(self.embedding.weight, self.embedding.num_embeddings + 1),
            [convolve.weight for convolve in self._convolutions()],
            widths=self.widths,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be recomputed."""
        return {**self.__dict__, "_kept": None}

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Drop the tables when torch moves or converts the weights."""
        self._kept = None
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def _convolutions(self) -> list[nn.Linear]:
        return [layer for layer in self.filters if isinstance(layer, nn.Linear)]

    def _look_up(self, char_ids: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
        """Return (U, C) ids into tables, and tables for all units or for these tokens' units."""
        filters = [convolve.weight for convolve in self._convolutions()]
        weights = [self.embedding.weight, *filters]
        is_training = torch.is_grad_enabled() and any(weight.requires_grad for weight in weights)
        num_units = self.embedding.num_embeddings
        if is_training or not self.has_few_units:
            distinct, unit_ids = number_distinct(char_ids, num_units=num_units + 1)
            units = extend_rows(self.embedding(distinct[distinct < num_units]), len(distinct))
            return unit_ids, make_tables(units, filters, widths=self.widths)
        kept = self._kept  # read once: another thread may replace it
        if kept is None or not kept.fit(weights):
            kept = KeptTables(
                weights=[weight.detach().clone() for weight in weights],
                tables=self.make_all_tables(),
            )
            self._kept = kept
        return char_ids, kept.tables


def check_ids(char_ids: Tensor | NDArray[np.int64], *, num_units: int) -> None:
    """Raise an error for ids outside the tables; a lookup would return another unit's row."""
    if not math.prod(char_ids.shape):
        return
    lowest, highest = int(char_ids.min()), int(char_ids.max())
    if not 0 <= lowest <= highest <= num_units:
        raise IndexError(
            f"expected character ids from 0 to {num_units}, got ids from {lowest} to {highest}"
        )


def _fill_block(ids: Tensor) -> Tensor:
    """Pad (U, ...) to whole blocks of rows by repeating the last token."""
    rows = torch.arange(round_up(len(ids)), device=ids.device)
    return ids[rows.clamp(max=len(ids) - 1)]


class Highway(nn.Module):
    """`gate * relu(transform(x)) + (1 - gate) * x` (Srivastava et al., 2015)."""

    def __init__(self, *, dim: int) -> None:
        super().__init__()
        self.transform = nn.Linear(dim, dim)
        self.gate = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """Map (U, F) to (U, F)."""
        gate = sigmoid(apply_linear(self.gate, x))
        return gate * torch.relu(apply_linear(self.transform, x)) + (1 - gate) * x


class TokenEncoder(nn.Module):
    """Context-free token vectors: word vector and characters, concatenated and projected.

    `characters` maps (U, C) char ids to (U, F), each token by itself: `CharacterCNN` or another.
    """

    def __init__(
        self,
        *,
        characters: nn.Module | None,
        highways: Sequence[Highway],
        words: nn.Embedding | None,
        projection: nn.Linear | None,
    ) -> None:
        super().__init__()
        self.characters = characters
        self.highways = nn.ModuleList(highways)
        self.words = words
        self.projection = projection

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device

    def forward(self, char_ids: Tensor | None, word_ids: Tensor | None) -> Tensor:
        """Encode (U, C) character ids, (U,) word ids or both as (U, D)."""
        parts = []
        num_tokens = 0
        if self.words is not None:
            assert word_ids is not None
            num_tokens = len(word_ids)
            parts.append(self.words(_fill_block(word_ids)))
        if self.characters is not None:
            assert char_ids is not None
            num_tokens = len(char_ids)
            x = self.characters(_fill_block(char_ids))
            for highway in self.highways:
                x = highway(x)
            parts.append(x)
        tokens = torch.cat(parts, dim=1)
        if self.projection is not None:
            tokens = apply_linear(self.projection, tokens)
        return tokens[:num_tokens]
