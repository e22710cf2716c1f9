"""Read each token on its own: character convolution, highway layers, word vector, projection.

Shapes: U distinct tokens, C characters, E char dim, F filters, D the token vector.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmore.model.rows import apply_linear, round_up, sigmoid


class CharacterCNN(nn.Module):
    """Keep the strongest response of each filter along a token's characters (Kim et al., 2016)."""

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
        self.activation = torch.tanh if uses_tanh else torch.relu

    def forward(self, char_ids: Tensor) -> Tensor:
        """Reduce (U, C) character ids to (U, F)."""
        chars = self.embedding(_drop_filler(char_ids, keep=max(self.widths)))  # (U, C, E)
        strongest = []
        for width, convolve in zip(self.widths, self.filters, strict=True):
            assert isinstance(convolve, nn.Linear)
            windows = chars.unfold(1, width, 1).transpose(2, 3)  # (U, C - width + 1, width, E)
            # One matrix product over all windows: a convolution's bits depend on the batch.
            responses = apply_linear(convolve, windows.reshape(-1, width * chars.shape[2]))
            strongest.append(responses.unflatten(0, windows.shape[:2]).amax(dim=1))
        return self.activation(torch.cat(strongest, dim=1))


def _fill_block(ids: Tensor) -> Tensor:
    """Repeat the last token of (U, ...) until there are whole blocks of rows."""
    rows = torch.arange(round_up(len(ids)), device=ids.device)
    return ids[rows.clamp(max=len(ids) - 1)]


def _drop_filler(char_ids: Tensor, *, keep: int) -> Tensor:
    """Cut (U, C) ids where only one and the same id follows in all tokens, but for `keep` of it.

    Windows of nothing but filler all respond alike, so a filter's maximum needs only one of them.
    """
    is_filler = (char_ids == char_ids[:1, -1:]).all(dim=0)
    num_filler = int(is_filler.flip(0).cumprod(0).sum())
    return char_ids[:, : char_ids.shape[1] - max(0, num_filler - keep)]


class Highway(nn.Module):
    """`gate * relu(transform(x)) + (1 - gate) * x`, the gate learned (Srivastava et al., 2015)."""

    def __init__(self, *, dim: int) -> None:
        super().__init__()
        self.transform = nn.Linear(dim, dim)
        self.gate = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """Map (U, F) to (U, F)."""
        gate = sigmoid(apply_linear(self.gate, x))
        return gate * torch.relu(apply_linear(self.transform, x)) + (1 - gate) * x


class TokenEncoder(nn.Module):
    """The context-free vector of a token: its word vector and its characters, projected."""

    def __init__(
        self,
        *,
        characters: CharacterCNN | None,
        highways: Sequence[Highway],
        words: nn.Embedding | None,
        projection: nn.Linear | None,
    ) -> None:
        super().__init__()
        self.characters = characters
        self.highways = nn.ModuleList(highways)
        self.words = words
        self.projection = projection

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
