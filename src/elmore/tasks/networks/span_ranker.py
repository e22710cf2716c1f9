"""End-to-end coreference: each span ranks the spans before it (Lee et al., 2017).

One LSTM a sentence, spans scored as mentions, the best of them kept, and for each a softmax over
its antecedents and a dummy, "none", that scores 0. As in Lee et al. (2018), a cheap bilinear score
chooses which antecedents are looked at and is a part of their score; clusters are not refined.
Unlike either, a span's vector is narrow (see `spans.py`), scorers have one hidden layer, the loss
is a mean over spans, mentions have a loss of their own (see `loss`), and genres are not told apart.

Shapes: S sentences, T tokens of the longest, N of the document, C spans, K kept ones, G a span,
A antecedents of each, M gold mentions.
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

# Each is compared with all others of the document, which may be long.
_SPANS_AT_ONCE = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentFeatures:
    """What a ranker must know of a document beside its tokens."""

    speakers: Tensor  # (S,) int64, numbers as `pair_scores.py` compares them
    mentions: Tensor | None = None  # (M, 2) int64, start and end in the document's tokens
    clusters: Tensor | None = None  # (M,) int64; a mention of two clusters is there twice


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranking:
    """All spans as mentions; those kept, in the order of the text, and what they may refer to."""

    candidates: Spans  # C
    mention_scores: Tensor  # (C,)
    spans: Spans  # K
    antecedents: Tensor  # (K, A) int64, rows of `spans`
    scores: Tensor  # (K, 1 + A), the dummy's first; -inf where an antecedent is not before its span


class SpanRanker(nn.Module):
    """Reads one document, a sentence a row, and finds clusters of its mentions."""

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
        """Return minus the log of what all right antecedents of a span have, on average.

        To this is added how badly mentions are told from other spans (as by Zhang et al., 2018).
        Without it a network may drop mentions before it has seen what they are good for; then it
        never sees them again, and has no loss by that. In training, a long document is cut to a
        window of its sentences, chosen by chance.
        """
        num_sentences = len(batch.features.speakers)
        if self.training and num_sentences > self.max_train_sentences:
            first = int(torch.randint(num_sentences - self.max_train_sentences + 1, ()))
            batch = cut_window(batch, first=first, num_sentences=self.max_train_sentences)
        ranking = self.rank(batch)
        is_right = mark_right(ranking, batch.features)
        right = ranking.scores.masked_fill(~is_right, -torch.inf).logsumexp(dim=1)
        ranking_loss = (ranking.scores.logsumexp(dim=1) - right).mean()
        is_mention = find_mentions(ranking.candidates, batch.features).any(dim=1)
        mention_loss = nn.functional.binary_cross_entropy_with_logits(
            ranking.mention_scores, is_mention.to(ranking.mention_scores), reduction="sum"
        )
        # By kept spans too: most candidates are soon told apart, and would hide the others.
        return ranking_loss + self.mention_weight * mention_loss / len(right)

    def predict(self, batch: TaskBatch) -> list[Clusters]:
        """Return the clusters of the one document; none of them has a single mention."""
        ranking = self.rank(batch)
        choices = ranking.scores.argmax(dim=1, keepdim=True)  # (K, 1), the dummy is 0
        with_none = nn.functional.pad(ranking.antecedents, (1, 0), value=-1)  # (K, 1 + A)
        best = with_none.gather(1, choices).squeeze(1)
        return [link_spans(ranking.spans.to_pairs(), best.tolist())]

    def rank(self, batch: TaskBatch) -> Ranking:
        """Score the antecedents of the spans that look most like mentions."""
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
        """Return rows (K, A) of the best spans before each, by what is cheap to compute.

        Where fewer than A are before it, later ones fill up.
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
    """Return (C, M) bool: which span is which gold mention."""
    if features.mentions is None:
        raise ValueError("a loss needs to know what is right; prepare the batch with gold")
    starts, ends = features.mentions.unbind(dim=1)
    return (spans.starts.unsqueeze(1) == starts) & (spans.ends.unsqueeze(1) == ends)


def mark_right(ranking: Ranking, features: DocumentFeatures) -> Tensor:
    """Return (K, 1 + A) bool: antecedents of the same cluster, or else the dummy."""
    is_mention = find_mentions(ranking.spans, features).float()  # (K, M)
    assert features.clusters is not None
    is_together = (features.clusters.unsqueeze(1) == features.clusters).float()  # (M, M)
    num_ways = is_mention @ is_together @ is_mention.T  # (K, K)
    is_right = (num_ways > 0).gather(1, ranking.antecedents) & _is_before(ranking.antecedents)
    return torch.cat([~is_right.any(dim=1, keepdim=True), is_right], dim=1)


def link_spans(spans: Sequence[Span], antecedents: Sequence[int]) -> Clusters:
    """Join each span to its antecedent, an earlier one; -1 is none.

    >>> link_spans([(0, 1), (2, 3), (4, 5), (7, 9), (8, 9)], [-1, 0, -1, 1, 2])
    (((0, 1), (2, 3), (7, 9)), ((4, 5), (8, 9)))
    """
    clusters: dict[int, list[Span]] = {}  # by the row of the first span
    firsts: list[int] = []
    for row, antecedent in enumerate(antecedents):
        firsts.append(row if antecedent < 0 else firsts[antecedent])
        clusters.setdefault(firsts[row], []).append(spans[row])
    return tuple(sorted(tuple(sorted(each)) for each in clusters.values() if len(each) > 1))


def cut_window(batch: TaskBatch, *, first: int, num_sentences: int) -> TaskBatch:
    """Return some sentences of a document as if they were all of it."""
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
    """Tell of rows (K, A) which are less than their own row."""
    rows = torch.arange(len(antecedents), device=antecedents.device)
    return antecedents < rows.unsqueeze(1)
