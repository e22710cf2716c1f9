"""Encode each token without context: character CNN, highway layers, word vector, projection.

Shapes: U distinct tokens, C characters, E char dim, F filters, D the token vector.
"""

from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
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
        self._check(char_ids)
        num_positions = count_positions(char_ids)
        unit_ids, tables = self._look_up(char_ids)
        strongest = strongest_responses(unit_ids, num_positions, tables)
        # The bias and the activation are monotonic, so they are applied after the maximum.
        biases = torch.cat([convolve.bias for convolve in self._convolutions()])
        return self.activate_(strongest.add_(biases))

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
        if is_training or num_units > MAX_KEPT_UNITS:
            distinct, unit_ids = number_distinct(char_ids, num_units=num_units + 1)
            units = extend_rows(self.embedding(distinct[distinct < num_units]), len(distinct))
            return unit_ids, make_tables(units, filters, widths=self.widths)
        kept = self._kept  # read once: another thread may replace it
        if kept is None or not kept.fit(weights):
            kept = KeptTables(
                weights=[weight.detach().clone() for weight in weights],
                tables=make_tables(
                    extend_rows(self.embedding.weight, num_units + 1), filters, widths=self.widths
                ),
            )
            self._kept = kept
        return char_ids, kept.tables

    def _check(self, char_ids: Tensor) -> None:
        """Raise an error for ids outside the tables; a lookup would return another unit's row."""
        num_units = self.embedding.num_embeddings
        if char_ids.numel() and not 0 <= int(char_ids.min()) <= int(char_ids.max()) <= num_units:
            raise IndexError(
                f"expected character ids from 0 to {num_units}, "
                f"got ids from {int(char_ids.min())} to {int(char_ids.max())}"
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
