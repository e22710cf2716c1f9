"""A vector of each token's characters: convolution filters and max pooling.

Shapes: K distinct tokens, C characters, E a character's vector, F filters.
"""

from torch import Tensor, nn

from elmore.text.characters import FILLER, NUM_BYTE_UNITS


class CharFilters(nn.Module):
    """Filters of one width, as in the paper's baselines, without highway layers."""

    def __init__(self, *, num_filters: int, width: int = 3, embedding_dim: int = 16) -> None:
        super().__init__()
        self.output_dim = num_filters
        self.embedding = nn.Embedding(NUM_BYTE_UNITS, embedding_dim, padding_idx=FILLER)
        self.filters = nn.Conv1d(embedding_dim, num_filters, width)

    def forward(self, spellings: Tensor) -> Tensor:
        """Map (K, C) ids to (K, F)."""
        chars = self.embedding(spellings).transpose(1, 2)  # (K, E, C)
        return self.filters(chars).amax(dim=-1).relu()
