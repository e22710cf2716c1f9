"""Score pairs of a span and an antecedent by their vectors, distance and speakers.

As in Lee et al. (2017, section 4), but without genres and with one hidden layer. The matrix of that
layer is split: parts that depend on one span are applied to spans, which are fewer than pairs.

Shapes: K spans, G a span, A antecedents per span, F the hidden layer.
"""

import torch
from torch import Tensor, nn

UNKNOWN_SPEAKER = 0
# The lower limits of distance buckets; distances are counted in kept spans.
DISTANCES = (1, 2, 3, 4, 5, 8, 16, 32, 64)
_NO_SPEAKERS, _SAME_SPEAKER, _OTHER_SPEAKER = range(3)


class PairScorer(nn.Module):
    """A network with one hidden layer over [g_i; g_j; g_i * g_j; distance; speakers]."""

    def __init__(self, *, span_dim: int, hidden_dim: int, dropout: float) -> None:
        super().__init__()
        self.span = nn.Linear(span_dim, hidden_dim)
        self.antecedent = nn.Linear(span_dim, hidden_dim, bias=False)
        self.product = nn.Linear(span_dim, hidden_dim, bias=False)
        self.distance = nn.Embedding(len(DISTANCES), hidden_dim)
        self.speakers = nn.Embedding(3, hidden_dim)
        self.top = nn.Sequential(nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden_dim, 1))

    def forward(self, vectors: Tensor, antecedents: Tensor, speakers: Tensor) -> Tensor:
        """Return scores (K, A), given spans (K, G), rows of antecedents (K, A), speakers (K,)."""
        rows = torch.arange(len(vectors), device=vectors.device)
        hidden = (
            self.span(vectors).unsqueeze(1)
            + self.antecedent(vectors)[antecedents]
            + self.product(vectors.unsqueeze(1) * vectors[antecedents])
            + self.distance(_find_distances(rows.unsqueeze(1) - antecedents))
            + self.speakers(_compare_speakers(speakers.unsqueeze(1), speakers[antecedents]))
        )  # (K, A, F)
        return self.top(hidden).squeeze(-1)


def _find_distances(num_back: Tensor) -> Tensor:
    """Return the distance buckets; a span that does not come before counts as distance 1."""
    limits = torch.tensor(DISTANCES, device=num_back.device)
    return (torch.bucketize(num_back, limits, right=True) - 1).clamp(min=0)


def _compare_speakers(speakers: Tensor, others: Tensor) -> Tensor:
    is_known = (speakers != UNKNOWN_SPEAKER) & (others != UNKNOWN_SPEAKER)
    compared = torch.where(speakers == others, _SAME_SPEAKER, _OTHER_SPEAKER)
    return compared.masked_fill(~is_known, _NO_SPEAKERS)
