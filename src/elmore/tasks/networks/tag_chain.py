"""How probable the predicted tags of a sentence are, in a linear chain (forward-backward).

Shapes: T tokens, K labels.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class TagChain:
    """The scores of one sentence's tags, and the tagging that was predicted."""

    labels: list[int]  # the predicted tagging
    scores: Tensor  # (T, K)
    transitions: Tensor  # (K, K), [before, after]; -inf forbids
    starts: Tensor  # (K,)
    ends: Tensor  # (K,)

    def probability(self, start: int, end: int) -> float:
        """Return the probability that all tokens from `start` up to `end` have these tags."""
        before, after, total = self._sums
        labels = self.labels[start:end]
        log = before[start, labels[0]] + after[end - 1, labels[-1]] - total
        for position in range(start + 1, end):
            one, two = self.labels[position - 1 : position + 1]
            log = log + self.transitions[one, two] + self.scores[position, two]
        return min(1.0, float(log.exp()))

    @cached_property
    def _sums(self) -> tuple[Tensor, Tensor, Tensor]:
        """Log-sums over taggings: up to each tag, after each tag (both (T, K)), and of all."""
        scores, transitions = self.scores.double(), self.transitions.double()
        before = [self.starts + scores[0]]
        for row in scores[1:]:
            before.append((before[-1].unsqueeze(1) + transitions).logsumexp(dim=0) + row)
        after = [self.ends.double()]
        for row in scores[1:].flip(0):
            after.append((transitions + row + after[-1]).logsumexp(dim=1))
        total = (before[-1] + self.ends).logsumexp(dim=0)
        return torch.stack(before), torch.stack(after[::-1]), total
