"""How well a span fits one before it: by both, how far apart they are, and who says them.

As Lee et al. (2017, section 4) have it, but for genres, and with one hidden layer. The matrix of
that layer is cut in parts: those of one span alone are multiplied with spans, of which there are
fewer than pairs.

Shapes: K spans, G a span, A antecedents of each, F the hidden layer.
"""

import torch
from torch import Tensor, nn

UNKNOWN_SPEAKER = 0
# How many kept spans an antecedent lies back, told apart from here on.
DISTANCES = (1, 2, 3, 4, 5, 8, 16, 32, 64)
_NO_SPEAKERS, _SAME_SPEAKER, _OTHER_SPEAKER = range(3)


class PairScorer(nn.Module):
    """A score of [g_i; g_j; g_i * g_j; distance; speakers], by one hidden layer."""

    def __init__(self, *, span_dim: int, hidden_dim: int, dropout: float) -> None:
        super().__init__()
        self.span = nn.Linear(span_dim, hidden_dim)
        self.antecedent = nn.Linear(span_dim, hidden_dim, bias=False)
        self.product = nn.Linear(span_dim, hidden_dim, bias=False)
        self.distance = nn.Embedding(len(DISTANCES), hidden_dim)
        self.speakers = nn.Embedding(3, hidden_dim)
        self.top = nn.Sequential(nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden_dim, 1))

    def forward(self, vectors: Tensor, antecedents: Tensor, speakers: Tensor) -> Tensor:
        """Map spans (K, G), rows of them (K, A) and who says each (K,) to (K, A)."""
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
    """Return which of DISTANCES is reached; those that are not back at all count as the first."""
    limits = torch.tensor(DISTANCES, device=num_back.device)
    return (torch.bucketize(num_back, limits, right=True) - 1).clamp(min=0)


def _compare_speakers(speakers: Tensor, others: Tensor) -> Tensor:
    is_known = (speakers != UNKNOWN_SPEAKER) & (others != UNKNOWN_SPEAKER)
    compared = torch.where(speakers == others, _SAME_SPEAKER, _OTHER_SPEAKER)
    return compared.masked_fill(~is_known, _NO_SPEAKERS)
