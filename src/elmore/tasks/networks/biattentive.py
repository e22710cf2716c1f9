"""The biattentive classification network (McCann et al., 2017), for one sentence.

Both sides of the biattention are the same sentence. Two things differ from the paper:

- Maxout layers have no batch normalization, with which the loss of a sentence would depend on its
  batch, and the last layer is linear. The ELMo paper does not normalize either.
- ELMo above is added to the integrator's output. The ELMo paper says only "the output of the
  biLSTM"; the network that its authors published has it there. Pooling then sees the vectors
  themselves, and the integrator is not wider.

Shapes: B sentences, T tokens, H hidden_dim, K labels.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmore.tasks.inputs.token_batch import TokenBatch
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.networks.attention import (
    SelfAttentivePooling,
    attend,
    pool_max,
    pool_mean,
    pool_min,
)
from elmore.tasks.networks.encoders import BiLSTM, SentenceDropout
from elmore.tasks.networks.label_choice import LabelChooser
from elmore.tasks.task import TaskBatch


class BiattentiveClassifier(LabelChooser):
    """Encodes a sentence, attends to it, encodes the result again, pools it and scores labels."""

    def __init__(
        self,
        *,
        tokens: TokenInput,
        labels: Sequence[str],
        hidden_dim: int,
        dropout: float = 0.0,
        num_pieces: int = 4,
    ) -> None:
        super().__init__(tokens=tokens, labels=labels)
        self.narrow = nn.Linear(tokens.input_dim, hidden_dim)
        self.encoder = BiLSTM(input_dim=hidden_dim, hidden_dim=hidden_dim)
        self.integrator = BiLSTM(input_dim=3 * self.encoder.output_dim, hidden_dim=hidden_dim)
        self.token_dropout = SentenceDropout(dropout)
        pooled_dim = self.integrator.output_dim + tokens.above_dim
        self.self_pool = SelfAttentivePooling(input_dim=pooled_dim)
        self.choose = nn.Sequential(
            nn.Dropout(dropout),
            Maxout(input_dim=4 * pooled_dim, output_dim=2 * hidden_dim, num_pieces=num_pieces),
            nn.Dropout(dropout),
            Maxout(input_dim=2 * hidden_dim, output_dim=hidden_dim, num_pieces=num_pieces),
            nn.Linear(hidden_dim, len(self.labels)),
        )

    def score(self, batch: TaskBatch) -> Tensor:
        """Return (B, K), not normalized."""
        (sentences,) = batch.sentences
        return self.choose(self._pool(self._integrate(sentences), sentences.mask))

    def _integrate(self, sentences: TokenBatch) -> Tensor:
        """Return (B, T, 2H + above_dim)."""
        x = self.token_dropout(self.narrow(self.tokens.below(sentences)).relu())
        hidden = self.encoder(x, sentences.lengths)  # (B, T, 2H)
        context = attend(hidden, sentences.mask)
        compared = torch.cat([hidden, hidden - context, hidden * context], dim=-1)
        integrated = self.integrator(self.token_dropout(compared), sentences.lengths)
        return self.tokens.above(integrated, sentences)

    def _pool(self, x: Tensor, mask: Tensor) -> Tensor:
        """Reduce (B, T, D) to (B, 4D)."""
        pooled = [pool_max(x, mask), pool_mean(x, mask), pool_min(x, mask), self.self_pool(x, mask)]
        return torch.cat(pooled, dim=-1)


class Maxout(nn.Module):
    """The elementwise maximum of several linear maps (Goodfellow et al., 2013)."""

    def __init__(self, *, input_dim: int, output_dim: int, num_pieces: int) -> None:
        super().__init__()
        self.num_pieces = num_pieces
        self.linear = nn.Linear(input_dim, output_dim * num_pieces)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, input_dim) to (B, output_dim)."""
        return self.linear(x).unflatten(-1, (-1, self.num_pieces)).amax(dim=-1)
