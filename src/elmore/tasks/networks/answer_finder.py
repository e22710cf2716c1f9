"""Find a question's answer in a passage: the network of Clark and Gardner (2018), one paragraph.

    [x; ELMo] -> LSTM -> [h; ELMo]              passage and question, with shared weights
    -> attention flow -> ReLU                   each token in the light of the question
    -> + (LSTM -> self-attention -> ReLU)       and of the rest of the passage
    -> LSTM -> start, [.; start states] -> LSTM -> end

As in Peters et al. (2018) for SQuAD, ELMo vectors are added below and above the first LSTM, so
attention sees them too. Differences from Clark and Gardner: LSTMs instead of GRUs, and no dropout
before the first LSTM, since `TokenInput` has its own.

Shapes: B examples, T tokens in the longest passage, J in the longest question, G gold spans,
H hidden_dim, D = 2H + above_dim, W max_answer_tokens.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from elmore.tasks.inputs.token_batch import TokenBatch
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.networks.attention_flow import AttentionFlow, SelfAttention
from elmore.tasks.networks.encoders import BiLSTM, SentenceDropout
from elmore.tasks.task import TaskBatch

NO_SPAN = -1  # fills up the gold spans of examples that have fewer than others


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundSpan:
    """The passage's tokens[start:end], and log p(start) + log p(end - 1)."""

    start: int
    end: int
    log_probability: float


class AnswerFinder(nn.Module):
    """Reads passages and questions, in this order, and predicts where answers start and end."""

    def __init__(
        self,
        *,
        tokens: TokenInput,
        hidden_dim: int,
        dropout: float = 0.2,
        max_answer_tokens: int = 17,
    ) -> None:
        super().__init__()
        both_dim = 2 * hidden_dim
        self.tokens = tokens
        self.max_answer_tokens = max_answer_tokens
        self.dropout = SentenceDropout(dropout)
        self.encoder = BiLSTM(input_dim=tokens.input_dim, hidden_dim=hidden_dim)
        self.attention_flow = AttentionFlow(dim=both_dim + tokens.above_dim)
        self.after_flow = nn.Linear(self.attention_flow.output_dim, both_dim)
        self.passage_reader = BiLSTM(input_dim=both_dim, hidden_dim=hidden_dim)
        self.self_attention = SelfAttention(dim=both_dim)
        self.after_self = nn.Linear(self.self_attention.output_dim, both_dim)
        self.start_reader = BiLSTM(input_dim=both_dim, hidden_dim=hidden_dim)
        self.end_reader = BiLSTM(input_dim=2 * both_dim, hidden_dim=hidden_dim)
        # Without a bias, which would cancel in the softmax over a passage's tokens.
        self.score_start = nn.Linear(both_dim, 1, bias=False)
        self.score_end = nn.Linear(both_dim, 1, bias=False)

    def forward(self, batch: TaskBatch) -> tuple[Tensor, Tensor]:
        """Return log p(start) and log p(last), each (B, T), -inf at padding."""
        passages, questions = batch.sentences
        flow = self.attention_flow(
            self._encode(passages),
            self._encode(questions),
            passage_mask=passages.mask,
            question_mask=questions.mask,
        )  # (B, T, 4D)
        asked = self.after_flow(flow).relu()  # (B, T, 2H)
        states = self.passage_reader(self.dropout(asked), passages.lengths)
        within = self.self_attention(self.dropout(states), mask=passages.mask)  # (B, T, 6H)
        known = self.dropout(asked + self.after_self(within).relu())
        starts = self.start_reader(known, passages.lengths)
        ends = self.end_reader(torch.cat([known, starts], dim=-1), passages.lengths)
        scores = torch.cat([self.score_start(starts), self.score_end(ends)], dim=-1)
        masked = scores.masked_fill(~passages.mask.unsqueeze(-1), -torch.inf)  # (B, T, 2)
        start_logs, last_logs = masked.log_softmax(dim=1).unbind(dim=-1)
        return start_logs, last_logs

    def loss(self, batch: TaskBatch) -> Tensor:
        """Return the mean of -log p(any gold span); 0 for an example without a gold span."""
        edges: Tensor | None = batch.features  # (B, G, 2) int64, first and last token
        if edges is None:
            raise ValueError("these examples were prepared without gold spans; a loss needs them")
        return answer_losses(*self(batch), edges=edges).mean()

    def predict(self, batch: TaskBatch) -> list[FoundSpan]:
        """Return the most probable span of at most `max_answer_tokens` in each passage."""
        return find_best_spans(*self(batch), max_tokens=self.max_answer_tokens)

    def _encode(self, sentences: TokenBatch) -> Tensor:
        """Return (B, T or J, D)."""
        states = self.encoder(self.tokens.below(sentences), sentences.lengths)
        return self.tokens.above(self.dropout(states), sentences)


def answer_losses(start_logs: Tensor, last_logs: Tensor, *, edges: Tensor) -> Tensor:
    """Return (B,): -log of the sum, over an example's gold spans, of p(start) p(last)."""
    is_span = edges[..., 0] != NO_SPAN  # (B, G)
    first, last = edges.clamp(min=0).unbind(dim=-1)
    span_logs = start_logs.gather(1, first) + last_logs.gather(1, last)
    log_sums = span_logs.masked_fill(~is_span, -torch.inf).logsumexp(dim=-1)  # (B,)
    return -log_sums.where(is_span.any(dim=-1), 0.0)


def find_best_spans(start_logs: Tensor, last_logs: Tensor, *, max_tokens: int) -> list[FoundSpan]:
    """Return the span that maximises log p(start) + log p(last), trying all of them."""
    width = min(max_tokens, start_logs.shape[1])
    ahead = pad(last_logs, (0, width - 1), value=-torch.inf).unfold(1, width, 1)  # (B, T, W)
    best_logs, best = (start_logs.unsqueeze(-1) + ahead).flatten(1).max(dim=-1)
    return [
        FoundSpan(start=index // width, end=index // width + index % width + 1, log_probability=log)
        for index, log in zip(best.tolist(), best_logs.tolist(), strict=True)
    ]
