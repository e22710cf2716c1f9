"""Spans that may be mentions: list them, compute their vectors, choose the best.

A span's vector is a linear map of [h_start; h_end; head; width], where head is the mean of the
span's inputs, weighted by attention (Lee et al., 2017, section 4). Unlike theirs, it is narrow, so
that pairs of spans are cheap. The matrix is applied to tokens, which are far fewer than spans.

Shapes: S sentences, N tokens of the document, C spans, K kept spans, X input, H hidden, G a span.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, kw_only=True, slots=True)
class Spans:
    """Spans tokens[start:end] of a document."""

    starts: Tensor  # (C,) int64
    ends: Tensor  # (C,) int64

    @property
    def widths(self) -> Tensor:
        """(C,) int64, in tokens."""
        return self.ends - self.starts

    def pick(self, rows: Tensor) -> "Spans":
        """Return some of the spans."""
        return Spans(starts=self.starts[rows], ends=self.ends[rows])

    def to_pairs(self) -> list[tuple[int, int]]:
        """Return (start, end) of each span."""
        return list(zip(self.starts.tolist(), self.ends.tolist(), strict=True))


def list_spans(lengths: Tensor, *, max_tokens: int) -> Spans:
    """Return all spans of up to `max_tokens` within sentences of `lengths` (S,), shortest first."""
    sentence_ends = lengths.cumsum(dim=0).repeat_interleave(lengths)  # (N,)
    room = sentence_ends - torch.arange(len(sentence_ends), device=lengths.device)
    starts = [(room >= width).nonzero().squeeze(1) for width in range(1, max_tokens + 1)]
    ends = [found + width for width, found in enumerate(starts, start=1)]
    return Spans(starts=torch.cat(starts), ends=torch.cat(ends))


class SpanVectors(nn.Module):
    """`W [h_start; h_end; head; width] + b`, computed as a sum of its parts."""

    def __init__(
        self, *, input_dim: int, hidden_dim: int, output_dim: int, max_tokens: int
    ) -> None:
        super().__init__()
        self.max_tokens = max_tokens
        self.start = nn.Linear(hidden_dim, output_dim)
        self.end = nn.Linear(hidden_dim, output_dim, bias=False)
        self.head = nn.Linear(input_dim, output_dim, bias=False)
        self.attention = nn.Linear(hidden_dim, 1, bias=False)
        self.width = nn.Embedding(max_tokens, output_dim)

    def forward(self, x: Tensor, hidden: Tensor, spans: Spans) -> Tensor:
        """Map tokens (N, X) and (N, H) to spans (C, G), in the order of `list_spans`."""
        return (
            self.start(hidden)[spans.starts]
            + self.end(hidden)[spans.ends - 1]
            + self._find_heads(self.head(x), self.attention(hidden), spans)
            + self.width(spans.widths - 1)
        )

    def _find_heads(self, tokens: Tensor, attention: Tensor, spans: Spans) -> Tensor:
        """Return (C, G): means of (N, G), weighted by the softmax of (N, 1) within each span.

        The mean over one more token is between the mean so far and that token. So spans of all
        starts grow by one token at a time, and no tensor has the size of spans times tokens.
        """
        heads, log_sums = tokens, attention
        found = [heads[spans.starts[spans.widths == 1]]]
        for width in range(2, self.max_tokens + 1):
            next_attention = attention[width - 1 :]
            share = torch.sigmoid(next_attention - log_sums[:-1])
            heads = torch.lerp(heads[:-1], tokens[width - 1 :], share)  # for starts 0 to N - width
            log_sums = torch.logaddexp(log_sums[:-1], next_attention)
            found.append(heads[spans.starts[spans.widths == width]])
        return torch.cat(found)


def choose_spans(spans: Spans, scores: Tensor, *, num_kept: int, allows_crossing: bool) -> Tensor:
    """Return the rows (K,) of the best-scoring spans, in text order.

    Unless crossing is allowed, a span that partially overlaps a better one is left out, so there
    may be fewer than `num_kept`.
    """
    # Stable, so that spans with equal scores (in a repeated sentence) are in a fixed order.
    best = scores.argsort(descending=True, stable=True)
    if allows_crossing:
        best = best[:num_kept]
    else:
        uncrossed = _skip_crossing(spans.pick(best).to_pairs(), num_kept=num_kept)
        best = best[torch.tensor(uncrossed, dtype=torch.int64, device=best.device)]
    kept = spans.pick(best)
    text_order = kept.starts * (1 + kept.ends.max()) + kept.ends
    return best[text_order.argsort()]


def _skip_crossing(pairs: Iterable[tuple[int, int]], *, num_kept: int) -> list[int]:
    """Return the rows of (start, end), best first, that cross none that was taken before."""
    taken: list[int] = []
    last_ends: dict[int, int] = {}  # the last end of the spans taken, by start
    first_starts: dict[int, int] = {}  # the first start, by end
    for row, (start, end) in enumerate(pairs):
        if len(taken) == num_kept:
            break
        if any(
            last_ends.get(position, end) > end or first_starts.get(position, start) < start
            for position in range(start + 1, end)
        ):
            continue
        taken.append(row)
        last_ends[start] = max(end, last_ends.get(start, end))
        first_starts[end] = min(start, first_starts.get(end, start))
    return taken
