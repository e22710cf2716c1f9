"""A linear-chain CRF over the tags of a sentence (Lafferty et al., 2001; Lample et al., 2016).

The score of a tagging (a tag sequence) is the sum of the scores of its tags, of the transitions
between them, and of the first and the last tag. Its probability is the softmax over all taggings.

Shapes: B sentences, T tokens in the longest, K labels.
"""

import torch
from torch import Tensor, nn

from elmore.tasks.networks.tag_chain import TagChain
from elmore.tasks.networks.tag_rules import TagRules, allow_all

# The score of a forbidden transition in training. Its exponential is 0, but unlike with -inf, the
# gradient is finite even where every path to a tag is forbidden.
FORBIDDEN = -10_000.0


class CRF(nn.Module):
    """Transition scores; transitions that the rules forbid have probability 0."""

    may_start: Tensor
    may_follow: Tensor
    may_end: Tensor

    def __init__(self, *, num_labels: int, rules: TagRules | None = None) -> None:
        super().__init__()
        self.starts = nn.Parameter(torch.zeros(num_labels))
        self.transitions = nn.Parameter(torch.zeros(num_labels, num_labels))  # [before, after]
        self.ends = nn.Parameter(torch.zeros(num_labels))
        rules = allow_all(num_labels) if rules is None else rules
        if len(rules.starts) != num_labels:
            raise ValueError(f"expected rules for {num_labels} labels, got {len(rules.starts)}")
        # Not saved with the weights, because they follow from the labels.
        self.register_buffer("may_start", rules.starts.clone(), persistent=False)
        self.register_buffer("may_follow", rules.follows.clone(), persistent=False)
        self.register_buffer("may_end", rules.ends.clone(), persistent=False)

    def log_likelihood(self, scores: Tensor, labels: Tensor, lengths: Tensor) -> Tensor:
        """Return (B,): the log-likelihood of taggings (B, T), given tag scores (B, T, K).

        At padding, labels can be any number from 0 to K - 1.
        """
        transitions = self._mask_forbidden(FORBIDDEN)
        return score_taggings(scores, labels, lengths, **transitions) - sum_taggings(
            scores, lengths, **transitions
        )

    def decode(self, scores: Tensor, lengths: Tensor) -> list[list[int]]:
        """Return the most probable tagging of each sentence."""
        return decode_best(scores, lengths, **self._mask_forbidden(-torch.inf))

    def decode_chains(self, scores: Tensor, lengths: Tensor) -> list[TagChain]:
        """Return the most probable tagging of each sentence, with its probabilities."""
        return decode_chains(scores, lengths, **self._mask_forbidden(-torch.inf))

    def _mask_forbidden(self, forbidden: float) -> dict[str, Tensor]:
        return {
            "starts": self.starts.masked_fill(~self.may_start, forbidden),
            "transitions": self.transitions.masked_fill(~self.may_follow, forbidden),
            "ends": self.ends.masked_fill(~self.may_end, forbidden),
        }


def score_taggings(
    scores: Tensor,
    labels: Tensor,
    lengths: Tensor,
    *,
    transitions: Tensor,
    starts: Tensor,
    ends: Tensor,
) -> Tensor:
    """Return (B,): the scores of taggings (B, T)."""
    positions = torch.arange(scores.shape[1], device=scores.device)
    mask = positions < lengths[:, None]  # (B, T)
    tags = scores.gather(2, labels.unsqueeze(2)).squeeze(2)  # (B, T)
    steps = transitions[labels[:, :-1], labels[:, 1:]]  # (B, T - 1)
    last = labels.gather(1, lengths[:, None] - 1).squeeze(1)  # (B,)
    return (
        starts[labels[:, 0]]
        + tags.where(mask, tags.new_zeros(())).sum(dim=1)
        + steps.where(mask[:, 1:], steps.new_zeros(())).sum(dim=1)
        + ends[last]
    )


def sum_taggings(
    scores: Tensor, lengths: Tensor, *, transitions: Tensor, starts: Tensor, ends: Tensor
) -> Tensor:
    """Return (B,): the log-sum-exp of the scores of all taggings."""
    sums = starts + scores[:, 0]  # (B, K), over all taggings so far that end in each label
    for position in range(1, scores.shape[1]):
        longer = (sums.unsqueeze(2) + transitions).logsumexp(dim=1) + scores[:, position]
        sums = longer.where((position < lengths)[:, None], sums)
    return (sums + ends).logsumexp(dim=1)


@torch.no_grad()
def decode_best(
    scores: Tensor, lengths: Tensor, *, transitions: Tensor, starts: Tensor, ends: Tensor
) -> list[list[int]]:
    """Return the best tagging of each sentence (Viterbi), given tag scores (B, T, K).

    `transitions` (K, K) is [before, after], `starts` and `ends` are (K,); -inf forbids. If every
    tagging is forbidden, an arbitrary one is returned.
    """
    best = starts + scores[:, 0]  # (B, K), of all taggings so far that end in each label
    stay = torch.arange(scores.shape[2], device=scores.device).expand_as(best)
    came_from = []  # (B, K) per position, from the second on
    for position in range(1, scores.shape[1]):
        longer, before = (best.unsqueeze(2) + transitions).max(dim=1)
        continues = (position < lengths)[:, None]
        best = (longer + scores[:, position]).where(continues, best)
        came_from.append(before.where(continues, stay))
    label = (best + ends).argmax(dim=1)  # (B,)
    backwards = [label]
    for before in reversed(came_from):
        label = before.gather(1, label.unsqueeze(1)).squeeze(1)
        backwards.append(label)
    taggings = torch.stack(backwards[::-1], dim=1).tolist()  # (B, T)
    return [tagging[:length] for tagging, length in zip(taggings, lengths.tolist(), strict=True)]


@torch.no_grad()
def decode_chains(
    scores: Tensor, lengths: Tensor, *, transitions: Tensor, starts: Tensor, ends: Tensor
) -> list[TagChain]:
    """Return the taggings of `decode_best`, with what their probabilities follow from."""
    taggings = decode_best(scores, lengths, transitions=transitions, starts=starts, ends=ends)
    return [
        TagChain(
            labels=tagging,
            scores=sentence[: len(tagging)].detach(),
            transitions=transitions.detach(),
            starts=starts.detach(),
            ends=ends.detach(),
        )
        for tagging, sentence in zip(taggings, scores, strict=True)
    ]
