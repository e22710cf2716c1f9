"""One tag per token: biLSTMs with a CRF or a softmax on top (Lample et al., 2016).

With the paper's character CNN and sizes, this is the network to which ELMo was added for named
entities (Peters et al., 2017 and 2018). Two things differ: dropout between layers has one mask per
sentence, and transitions that the tag scheme forbids have probability 0 in training too.

Shapes: B sentences, T tokens in the longest, H one direction, K labels.
"""

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional

from elmore.tasks.inputs.token_batch import TokenBatch
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.networks.crf import CRF
from elmore.tasks.networks.encoders import BiLSTM
from elmore.tasks.networks.tag_chain import TagChain
from elmore.tasks.networks.tag_numbers import NO_LABEL
from elmore.tasks.networks.tag_rules import TagRules
from elmore.tasks.task import TaskBatch


class Tagger(nn.Module):
    """`[x; ELMo]` -> biLSTMs -> `[h; ELMo]` -> a score per label -> the best tag sequence."""

    def __init__(
        self,
        *,
        tokens: TokenInput,
        num_labels: int,
        write: Callable[[list[int]], list[str]],  # converts numbers to tags
        hidden_dim: int,
        num_layers: int = 1,
        dropout: float = 0.0,
        uses_crf: bool = True,
        rules: TagRules | None = None,
    ) -> None:
        super().__init__()
        self.tokens = tokens
        self.encoder = BiLSTM(
            input_dim=tokens.input_dim,
            hidden_dim=hidden_dim,
            num_layers=num_layers,
            dropout=dropout,
        )
        # Not applied to the ELMo vectors above, which have their own dropout.
        self.dropout = nn.Dropout(dropout)
        self.scorer = nn.Linear(self.encoder.output_dim + tokens.above_dim, num_labels)
        self.crf = CRF(num_labels=num_labels, rules=rules)
        self.uses_crf = uses_crf
        # Untrained transitions score 0, so only the rules have an effect.
        self.crf.requires_grad_(uses_crf)
        self.write = write

    def loss(self, batch: TaskBatch) -> Tensor:
        """Return the mean over sentences of -log p(tags)."""
        (sentences,) = batch.sentences
        gold: Tensor | None = batch.features  # (B, T) int64, numbers of labels, or NO_LABEL
        if gold is None:
            raise ValueError("this batch was prepared without gold tags; a loss needs them")
        scores = self._score(sentences)
        losses = (
            self._crf_losses(scores, gold, sentences)
            if self.uses_crf
            else functional.cross_entropy(
                scores.transpose(1, 2), gold, ignore_index=NO_LABEL, reduction="none"
            ).sum(dim=1)
        )
        return losses.mean()

    def predict(self, batch: TaskBatch) -> list[list[str]]:
        """Return the best tags of each sentence."""
        (sentences,) = batch.sentences
        return [
            self.write(numbers)
            for numbers in self.crf.decode(self._score(sentences), sentences.lengths)
        ]

    def predict_chains(self, batch: TaskBatch) -> list[TagChain]:
        """Return the best tags of each sentence, with their probabilities."""
        (sentences,) = batch.sentences
        return self.crf.decode_chains(self._score(sentences), sentences.lengths)

    def _score(self, sentences: TokenBatch) -> Tensor:
        """Return (B, T, K)."""
        hidden = self.encoder(self.tokens.below(sentences), sentences.lengths)  # (B, T, 2H)
        return self.scorer(self.tokens.above(self.dropout(hidden), sentences))

    def _crf_losses(self, scores: Tensor, gold: Tensor, sentences: TokenBatch) -> Tensor:
        """Return (B,): 0 for a sentence with a tag that does not occur in training."""
        is_known = ((gold != NO_LABEL) | ~sentences.mask).all(dim=1)
        likelihoods = self.crf.log_likelihood(scores, gold.clamp(min=0), sentences.lengths)
        return -likelihoods.where(is_known, likelihoods.new_zeros(()))
