"""Tag the arguments of a predicate: a deep LSTM with a predicate indicator (He et al., 2017).

This is the network to which ELMo was added for semantic roles (Peters et al., 2018): `[x; ELMo]`
and a vector that marks the predicate, LSTM layers of alternating direction, and a softmax over BIO
tags for each token. Tags are learned independently; predictions are valid BIO sequences, found by
Viterbi without learned transitions. The other constraints of He et al. are not used.

Shapes: B examples, T tokens in the longest, D input, M the predicate's mark, H hidden, K labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmore.tasks.inputs.token_batch import TokenBatch
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.metrics.tag_schemes import TagScheme
from elmore.tasks.networks.alternating_lstm import AlternatingLSTM
from elmore.tasks.networks.crf import decode_chains
from elmore.tasks.networks.tag_chain import TagChain
from elmore.tasks.networks.tag_numbers import NO_LABEL
from elmore.tasks.networks.tag_rules import find_transitions
from elmore.tasks.task import TaskBatch


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleFeatures:
    """The index of each example's predicate, and the gold tags if they are known."""

    predicates: Tensor  # (B,) int64
    tags: Tensor | None  # (B, T) int64, numbers of labels, or NO_LABEL


class RoleTagger(nn.Module):
    """Words and the predicate's mark -> alternating LSTM -> a score per label."""

    starts: Tensor
    transitions: Tensor
    ends: Tensor

    def __init__(
        self,
        *,
        tokens: TokenInput,
        labels: Sequence[str],
        hidden_dim: int,
        num_layers: int,
        mark_dim: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.tokens = tokens
        self.labels = tuple(labels)
        self.marks = nn.Embedding(2, mark_dim)  # not the predicate, the predicate
        self.encoder = AlternatingLSTM(
            input_dim=tokens.input_dim + mark_dim,
            hidden_dim=hidden_dim,
            num_layers=num_layers,
            dropout=dropout,
        )
        self.linear = nn.Linear(hidden_dim + tokens.above_dim, len(self.labels))
        rules = find_transitions(self.labels, scheme=TagScheme.IOB2).as_scores()
        # Not saved with the weights, because they follow from the labels.
        self.register_buffer("starts", rules["starts"], persistent=False)
        self.register_buffer("transitions", rules["transitions"], persistent=False)
        self.register_buffer("ends", rules["ends"], persistent=False)

    def scores(self, batch: TaskBatch) -> Tensor:
        """Return (B, T, K)."""
        (sentences,) = batch.sentences
        words = self.tokens.below(sentences)  # (B, T, D)
        marks = self._mark(batch.features.predicates, sentences)  # (B, T, M)
        hidden = self.encoder(torch.cat([words, marks], dim=-1), sentences.lengths)  # (B, T, H)
        return self.linear(self.tokens.above(hidden, sentences))

    def loss(self, batch: TaskBatch) -> Tensor:
        """Return the cross entropy per tag, averaged over tokens and then over examples."""
        (sentences,) = batch.sentences
        scores = self.scores(batch).transpose(1, 2)  # (B, K, T)
        losses = functional.cross_entropy(
            scores, batch.features.tags, ignore_index=NO_LABEL, reduction="none"
        )
        return (losses.sum(dim=1) / sentences.lengths).mean()

    def predict(self, batch: TaskBatch) -> list[tuple[str, ...]]:
        """Return the best valid BIO tags of each example."""
        return [self.write(chain.labels) for chain in self.predict_chains(batch)]

    def predict_chains(self, batch: TaskBatch) -> list[TagChain]:
        """Return the best valid BIO tags of each example, with their probabilities."""
        (sentences,) = batch.sentences
        return decode_chains(
            self.scores(batch),
            sentences.lengths,
            starts=self.starts,
            transitions=self.transitions,
            ends=self.ends,
        )

    def write(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """Convert numbers to tags."""
        return tuple(self.labels[number] for number in numbers)

    def _mark(self, predicates: Tensor, sentences: TokenBatch) -> Tensor:
        positions = torch.arange(sentences.words.shape[1], device=predicates.device)
        return self.marks((positions == predicates[:, None]).long())
