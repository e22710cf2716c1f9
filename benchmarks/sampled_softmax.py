"""The loss of a language model over a few words of a large vocabulary (Jean et al., 2015).

Shapes: N tokens, D the output of one direction, V words, S negatives.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.sentences import Sentences

NUM_WORDS = 100_000
NUM_NEGATIVES = 8192
_BEGIN, _END, _NUM_MARKERS = 0, 1, 2


class SampledSoftmax(nn.Module):
    """Both directions' loss; the gradient of its weights is sparse or dense."""

    def __init__(self, *, dim: int, is_sparse: bool, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.weight = nn.Parameter(torch.randn(NUM_WORDS, dim, generator=generator) * dim**-0.5)
        self.bias = nn.Parameter(torch.zeros(NUM_WORDS, 1))
        self.is_sparse = is_sparse
        ranks = torch.arange(NUM_WORDS, dtype=torch.float64)
        shares = torch.log1p(1 / (ranks + 1)) / torch.log(ranks[-1] + 2)  # log-uniform
        # The same negatives for every contestant and run, since sampling is not measured.
        self.negatives = torch.multinomial(shares, NUM_NEGATIVES, generator=generator)
        self.log_expected = torch.log(-torch.expm1(NUM_NEGATIVES * torch.log1p(-shares))).float()

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Add the losses of flat (N, 2D) outputs whose words are (N,)."""
        forward_lm, backward_lm = outputs.chunk(2, dim=1)
        has_next = targets[:-1] != _END
        after = self._loss(forward_lm[:-1][has_next], targets[1:][has_next])
        before = self._loss(backward_lm[1:][has_next], targets[:-1][has_next])
        return after + before

    def _loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        words = torch.cat([targets, self.negatives])
        weights = functional.embedding(words, self.weight, sparse=self.is_sparse)
        biases = functional.embedding(words, self.bias, sparse=self.is_sparse).squeeze(1)
        biases = biases - self.log_expected[words]
        right = (outputs * weights[: len(targets)]).sum(dim=1) + biases[: len(targets)]
        wrong = torch.addmm(biases[len(targets) :], outputs, weights[len(targets) :].t())
        wrong = wrong.masked_fill(targets[:, None] == self.negatives, -torch.inf)
        logits = torch.cat([right[:, None], wrong], dim=1)  # (N, 1 + S)
        return functional.cross_entropy(logits, torch.zeros_like(targets), reduction="sum")


def number_targets(sentences: Sentences, ranks: dict[str, int]) -> Tensor:
    """Return (N,) word ids, sentence after sentence, markers included."""
    targets = [
        number
        for sentence in sentences
        for number in (_BEGIN, *(_NUM_MARKERS + ranks[token] for token in sentence), _END)
    ]
    return torch.tensor(targets)
