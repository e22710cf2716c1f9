"""The tags of a sentence as one choice: a linear-chain CRF (Lafferty et al., 2001).

A tagging scores what its tags score one by one, and what each two side by side, the first and the
last score; its probability is e to that, among all taggings. As in Lample et al. (2016).

Shapes: B sentences, T tokens of the longest, K labels.
"""

import torch
from torch import Tensor, nn

from elmore.tasks.networks.tag_rules import TagRules, allow_all

# In training, what a forbidden step scores: e to it is 0, and yet gradients stay numbers, which
# they would not with -inf wherever all ways to a tag are forbidden.
FORBIDDEN = -10_000.0


class CRF(nn.Module):
    """Scores of steps between labels; steps that the rules forbid have no probability."""

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
            raise ValueError(f"wanted rules for {num_labels} labels, got {len(rules.starts)}")
        # Not saved with the weights: they follow from the labels.
        self.register_buffer("may_start", rules.starts.clone(), persistent=False)
        self.register_buffer("may_follow", rules.follows.clone(), persistent=False)
        self.register_buffer("may_end", rules.ends.clone(), persistent=False)

    def log_likelihood(self, scores: Tensor, labels: Tensor, lengths: Tensor) -> Tensor:
        """Return (B,): how probable the taggings (B, T) are, given each tag's score (B, T, K).

        Behind a sentence's end, labels may be any of 0 to K - 1.
        """
        steps = self._steps(FORBIDDEN)
        return score_taggings(scores, labels, lengths, **steps) - sum_taggings(
            scores, lengths, **steps
        )

    def decode(self, scores: Tensor, lengths: Tensor) -> list[list[int]]:
        """Return the most probable tagging of each sentence."""
        return decode_best(scores, lengths, **self._steps(-torch.inf))

    def _steps(self, forbidden: float) -> dict[str, Tensor]:
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
    """Return (B,): all that counts for one tagging (B, T) each."""
    places = torch.arange(scores.shape[1], device=scores.device)
    mask = places < lengths[:, None]  # (B, T)
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
    """Return (B,): the log of the sum over all taggings, of e to what each scores."""
    sums = starts + scores[:, 0]  # (B, K), over all taggings so far that end in a label
    for place in range(1, scores.shape[1]):
        longer = (sums.unsqueeze(2) + transitions).logsumexp(dim=1) + scores[:, place]
        sums = longer.where((place < lengths)[:, None], sums)
    return (sums + ends).logsumexp(dim=1)


@torch.no_grad()
def decode_best(
    scores: Tensor, lengths: Tensor, *, transitions: Tensor, starts: Tensor, ends: Tensor
) -> list[list[int]]:
    """Return each sentence's best tagging (Viterbi) by the scores (B, T, K) of its tags.

    -inf forbids: `transitions` (K, K) is [before, after], `starts` and `ends` are (K,). Where
    every tagging is forbidden, some tagging is returned.
    """
    best = starts + scores[:, 0]  # (B, K), of all taggings so far that end in a label
    stay = torch.arange(scores.shape[2], device=scores.device).expand_as(best)
    came_from = []  # (B, K) a place, from the second on
    for place in range(1, scores.shape[1]):
        longer, before = (best.unsqueeze(2) + transitions).max(dim=1)
        goes_on = (place < lengths)[:, None]
        best = (longer + scores[:, place]).where(goes_on, best)
        came_from.append(before.where(goes_on, stay))
    label = (best + ends).argmax(dim=1)  # (B,)
    backwards = [label]
    for before in reversed(came_from):
        label = before.gather(1, label.unsqueeze(1)).squeeze(1)
        backwards.append(label)
    taggings = torch.stack(backwards[::-1], dim=1).tolist()  # (B, T)
    return [tagging[:length] for tagging, length in zip(taggings, lengths.tolist(), strict=True)]
