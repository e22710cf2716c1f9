"""ESIM, enhanced sequential inference (Chen et al., 2017), for a pair of sentences.

As in the ELMo paper for SNLI, ELMo vectors are added below and above the first biLSTM, so tokens
are also aligned by their ELMo vectors; all hidden layers use ReLU, including the last, which was
tanh; and all tokens of a sentence share one dropout mask before the second biLSTM. This is the
sequential one of the two networks of Chen et al., without tree-LSTMs.

Shapes: B pairs, S and T tokens, H hidden_dim, D = 2H + above_dim, K labels.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmore.tasks.inputs.token_batch import TokenBatch
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.networks.attention import align, pool_max, pool_mean
from elmore.tasks.networks.encoders import BiLSTM, SentenceDropout
from elmore.tasks.networks.label_choice import LabelChooser
from elmore.tasks.task import TaskBatch


class ESIM(LabelChooser):
    """Encodes both sentences, aligns and compares their tokens, pools them and scores labels."""

    def __init__(
        self, *, tokens: TokenInput, labels: Sequence[str], hidden_dim: int, dropout: float = 0.0
    ) -> None:
        super().__init__(tokens=tokens, labels=labels)
        self.encoder = BiLSTM(input_dim=tokens.input_dim, hidden_dim=hidden_dim)
        encoded_dim = self.encoder.output_dim + tokens.above_dim
        self.narrow = nn.Linear(4 * encoded_dim, hidden_dim)
        self.token_dropout = SentenceDropout(dropout)
        self.composer = BiLSTM(input_dim=hidden_dim, hidden_dim=hidden_dim)
        self.choose = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(4 * self.composer.output_dim, hidden_dim),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_dim, len(self.labels)),
        )

    def score(self, batch: TaskBatch) -> Tensor:
        """Return (B, K), not normalized."""
        premises, hypotheses = batch.sentences
        first, second = self._encode(premises), self._encode(hypotheses)  # (B, S, D), (B, T, D)
        of_first, of_second = align(
            first, second, first_mask=premises.mask, second_mask=hypotheses.mask
        )
        pooled = [
            *self._compose(first, of_first, premises),
            *self._compose(second, of_second, hypotheses),
        ]
        return self.choose(torch.cat(pooled, dim=-1))

    def _encode(self, sentences: TokenBatch) -> Tensor:
        hidden = self.encoder(self.tokens.below(sentences), sentences.lengths)
        return self.tokens.above(hidden, sentences)

    def _compose(self, x: Tensor, aligned: Tensor, sentences: TokenBatch) -> tuple[Tensor, Tensor]:
        """Compare tokens (B, T, D) with the aligned ones; return two vectors (B, 2H)."""
        compared = torch.cat([x, aligned, x - aligned, x * aligned], dim=-1)
        narrowed = self.token_dropout(self.narrow(compared).relu())
        composed = self.composer(narrowed, sentences.lengths)
        return pool_mean(composed, sentences.mask), pool_max(composed, sentences.mask)
