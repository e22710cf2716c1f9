"""End-to-end coreference: each span ranks the spans before it (Lee et al., 2017).

An LSTM reads each sentence. All spans are scored as mentions and the best are kept. For each kept
span there is a softmax over its antecedents and a dummy, "none", with score 0. As in Lee et al.
(2018), a cheap bilinear score selects the antecedents to consider and is a part of their score;
clusters are not refined. Unlike in both papers, span vectors are narrow (see `spans.py`), scorers
have one hidden layer, the loss is a mean over spans, mentions have a separate loss (see `loss`),
and genres are not used.

Shapes: S sentences, T tokens in the longest, N in the document, C spans, K kept spans, G a span,
A antecedents per span, M gold mentions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from elmore.tasks.data.mentions import Clusters, Span
from elmore.tasks.inputs.token_batch import TokenBatch
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.networks.encoders import BiLSTM, SentenceDropout
from elmore.tasks.networks.pair_scores import PairScorer
from elmore.tasks.networks.spans import Spans, SpanVectors, choose_spans, list_spans
from elmore.tasks.task import TaskBatch

# Each is compared with all others of a document, which may be long.
_SPANS_AT_ONCE = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentFeatures:
    """What the network reads of a document in addition to its tokens."""

    speakers: Tensor  # (S,) int64, a number for each speaker; UNKNOWN_SPEAKER if unknown
    mentions: Tensor | None = None  # (M, 2) int64, tokens[start:end] of the document
    clusters: Tensor | None = None  # (M,) int64; a mention in two clusters is listed twice


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranking:
    """Scores of all spans as mentions, and the kept spans in text order with their antecedents."""

    candidates: Spans  # C
    mention_scores: Tensor  # (C,)
    spans: Spans  # K
    antecedents: Tensor  # (K, A) int64, rows of `spans`
    scores: Tensor  # (K, 1 + A), the dummy first; -inf if an antecedent is not before its span


class SpanRanker(nn.Module):
    """Reads one document, one sentence per row, and finds clusters of its mentions."""

    def __init__(
        self,
        *,
        tokens: TokenInput,
        hidden_dim: int,
        num_layers: int,
        span_dim: int,
        scorer_dim: int,
        max_span_tokens: int,
        spans_per_token: float,
        allows_crossing: bool,
        max_antecedents: int,
        max_train_sentences: int,
        mention_weight: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.max_span_tokens = max_span_tokens
        self.spans_per_token = spans_per_token
        self.allows_crossing = allows_crossing
        self.max_antecedents = max_antecedents
        self.max_train_sentences = max_train_sentences
        self.mention_weight = mention_weight
        self.tokens = tokens
        self.encoder = BiLSTM(
            input_dim=tokens.input_dim,
            hidden_dim=hidden_dim,
            num_layers=num_layers,
            dropout=dropout,
        )
        self.dropout = SentenceDropout(dropout)
        self.span_vectors = SpanVectors(
            input_dim=tokens.input_dim,
            hidden_dim=self.encoder.output_dim + tokens.above_dim,
            output_dim=span_dim,
            max_tokens=max_span_tokens,
        )
        self.mention_scorer = nn.Sequential(
            nn.Linear(span_dim, scorer_dim),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(scorer_dim, 1),
        )
        self.coarse = nn.Linear(span_dim, span_dim, bias=False)
        self.pair_scorer = PairScorer(span_dim=span_dim, hidden_dim=scorer_dim, dropout=dropout)

    def loss(self, batch: TaskBatch) -> Tensor:
        """Return the mean over spans of -log p(any correct antecedent), plus a loss for mentions.

        The second loss is the cross entropy of recognizing mentions (as in Zhang et al., 2018).
        Without it, a network may discard mentions early on; then they have no antecedents and no
        loss, and are never learned. In training, a long document is cut to a random window of
        sentences.
        """
        num_sentences = len(batch.features.speakers)
        if self.training and num_sentences > self.max_train_sentences:
            first = int(torch.randint(num_sentences - self.max_train_sentences + 1, ()))
            batch = cut_window(batch, first=first, num_sentences=self.max_train_sentences)
        ranking = self.rank(batch)
        is_correct = mark_correct(ranking, batch.features)
        correct = ranking.scores.masked_fill(~is_correct, -torch.inf).logsumexp(dim=1)
        ranking_loss = (ranking.scores.logsumexp(dim=1) - correct).mean()
        is_mention = find_mentions(ranking.candidates, batch.features).any(dim=1)
        mention_loss = nn.functional.binary_cross_entropy_with_logits(
            ranking.mention_scores, is_mention.to(ranking.mention_scores), reduction="sum"
        )
        # Divided by kept spans, not by candidates, most of which are easy and would dominate.
        return ranking_loss + self.mention_weight * mention_loss / len(correct)

    def predict(self, batch: TaskBatch) -> list[Clusters]:
        """Return the clusters of the document, each with at least two mentions."""
        ranking = self.rank(batch)
        choices = ranking.scores.argmax(dim=1, keepdim=True)  # (K, 1), the dummy is 0
        with_none = nn.functional.pad(ranking.antecedents, (1, 0), value=-1)  # (K, 1 + A)
        best = with_none.gather(1, choices).squeeze(1)
        return [link_spans(ranking.spans.to_pairs(), best.tolist())]

    def rank(self, batch: TaskBatch) -> Ranking:
        """Score the antecedents of the most likely mentions."""
        (tokens,) = batch.sentences
        candidates = list_spans(tokens.lengths, max_tokens=self.max_span_tokens)
        candidate_vectors = self.span_vectors(*self._encode(tokens), candidates)  # (C, G)
        candidate_scores = self.mention_scorer(candidate_vectors).squeeze(-1)  # (C,)
        kept = choose_spans(
            candidates,
            candidate_scores.detach(),
            num_kept=max(1, int(self.spans_per_token * int(tokens.lengths.sum()))),
            allows_crossing=self.allows_crossing,
        )
        spans, vectors = candidates.pick(kept), candidate_vectors[kept]
        mention_scores = candidate_scores[kept]
        antecedents = self._choose_antecedents(vectors, mention_scores)
        speakers = batch.features.speakers.repeat_interleave(tokens.lengths)[spans.starts]
        scores = (
            mention_scores.unsqueeze(1)
            + mention_scores[antecedents]
            + (self.coarse(vectors).unsqueeze(1) * vectors[antecedents]).sum(dim=-1)
            + self.pair_scorer(vectors, antecedents, speakers)
        ).masked_fill(~_is_before(antecedents), -torch.inf)
        scores = torch.cat([scores.new_zeros(len(scores), 1), scores], dim=1)
        return Ranking(
            candidates=candidates,
            mention_scores=candidate_scores,
            spans=spans,
            antecedents=antecedents,
            scores=scores,
        )

    def _encode(self, tokens: TokenBatch) -> tuple[Tensor, Tensor]:
        """Return the document's inputs (N, X) and hidden states (N, H)."""
        x = self.tokens.below(tokens)  # (S, T, X)
        hidden = self.dropout(self.encoder(x, tokens.lengths))
        hidden = self.tokens.above(hidden, tokens)
        return x[tokens.mask], hidden[tokens.mask]

    @torch.no_grad()
    def _choose_antecedents(self, vectors: Tensor, mention_scores: Tensor) -> Tensor:
        """Return rows (K, A) of the best spans before each span, by the cheap score.

        If there are fewer than A, the rest are arbitrary later spans.
        """
        num_spans = len(vectors)
        num_chosen = min(self.max_antecedents, num_spans - 1)
        columns = torch.arange(num_spans, device=vectors.device)
        chosen = []
        for rows in columns.split(_SPANS_AT_ONCE):
            # A span's own mention score is the same for all its antecedents.
            scores = self.coarse(vectors[rows]) @ vectors.T + mention_scores
            scores = scores.masked_fill(columns >= rows.unsqueeze(1), -torch.inf)
            chosen.append(scores.topk(num_chosen, dim=1).indices)
        return torch.cat(chosen)


def find_mentions(spans: Spans, features: DocumentFeatures) -> Tensor:
    """Return (C, M) bool: True where a span is a gold mention."""
    if features.mentions is None:
        raise ValueError("this document was prepared without gold mentions; a loss needs them")
    starts, ends = features.mentions.unbind(dim=1)
    return (spans.starts.unsqueeze(1) == starts) & (spans.ends.unsqueeze(1) == ends)


def mark_correct(ranking: Ranking, features: DocumentFeatures) -> Tensor:
    """Return (K, 1 + A) bool: antecedents in the same cluster; if there are none, the dummy."""
    is_mention = find_mentions(ranking.spans, features).float()  # (K, M)
    assert features.clusters is not None
    is_together = (features.clusters.unsqueeze(1) == features.clusters).float()  # (M, M)
    num_ways = is_mention @ is_together @ is_mention.T  # (K, K)
    is_correct = (num_ways > 0).gather(1, ranking.antecedents) & _is_before(ranking.antecedents)
    return torch.cat([~is_correct.any(dim=1, keepdim=True), is_correct], dim=1)


def link_spans(spans: Sequence[Span], antecedents: Sequence[int]) -> Clusters:
    """Join each span to its antecedent, an earlier span; -1 for none.

    >>> link_spans([(0, 1), (2, 3), (4, 5), (7, 9), (8, 9)], [-1, 0, -1, 1, 2])
    (((0, 1), (2, 3), (7, 9)), ((4, 5), (8, 9)))
    """
    clusters: dict[int, list[Span]] = {}  # by the row of their first span
    firsts: list[int] = []
    for row, antecedent in enumerate(antecedents):
        firsts.append(row if antecedent < 0 else firsts[antecedent])
        clusters.setdefault(firsts[row], []).append(spans[row])
    return tuple(sorted(tuple(sorted(each)) for each in clusters.values() if len(each) > 1))


def cut_window(batch: TaskBatch, *, first: int, num_sentences: int) -> TaskBatch:
    """Return some sentences of a document as a document."""
    (tokens,) = batch.sentences
    rows = slice(first, first + num_sentences)
    lengths = tokens.lengths[rows]
    columns = slice(int(lengths.max()))
    window = TokenBatch(
        words=tokens.words[rows, columns],
        spellings=tokens.spellings,
        spelled=tokens.spelled[rows, columns],
        lengths=lengths,
        layers=None if tokens.layers is None else tokens.layers[:, rows, columns],
    )
    features = batch.features
    mentions, clusters = features.mentions, features.clusters
    if mentions is not None and clusters is not None:
        mentions = mentions - tokens.lengths[:first].sum()
        is_inside = (mentions[:, 0] >= 0) & (mentions[:, 1] <= lengths.sum())
        mentions, clusters = mentions[is_inside], clusters[is_inside]
    cut = DocumentFeatures(speakers=features.speakers[rows], mentions=mentions, clusters=clusters)
    return TaskBatch(sentences=(window,), features=cut)


def _is_before(antecedents: Tensor) -> Tensor:
    """Return where rows (K, A) come before their own row."""
    rows = torch.arange(len(antecedents), device=antecedents.device)
    return antecedents < rows.unsqueeze(1)
