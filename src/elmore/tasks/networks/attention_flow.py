"""Attention between a passage and a question, and of a passage to itself.

The first is bidirectional attention flow (Seo et al., 2017), the second follows Clark and Gardner
(2018). Both measure how alike two tokens are by `w1.x + w2.y + w3.(x * y)`; here without a bias
and, of a passage to itself, without w1, since a softmax over y cancels both.

Shapes: B examples, T tokens of the longest passage, J of the longest question, D a token.
"""

import torch
from torch import Tensor, nn


class AttentionFlow(nn.Module):
    """Gives each token of a passage what the question says of it."""

    def __init__(self, *, dim: int) -> None:
        super().__init__()
        self.output_dim = 4 * dim
        self.passage_weights = _start_weights(dim)
        self.question_weights = _start_weights(dim)
        self.product_weights = _start_weights(dim)

    def forward(
        self, passage: Tensor, question: Tensor, *, passage_mask: Tensor, question_mask: Tensor
    ) -> Tensor:
        """Map (B, T, D) and (B, J, D) to (B, T, 4D); a place that is no token has anything."""
        likeness = compare_all(
            passage,
            question,
            other_weights=self.question_weights,
            product_weights=self.product_weights,
        ) + (passage @ self.passage_weights).unsqueeze(-1)  # (B, T, J)
        to_question = masked_softmax(likeness, question_mask.unsqueeze(1))
        asked = to_question @ question  # (B, T, D)
        # A token of the passage counts by the one of the question that it is most like.
        closest = _hide(likeness, question_mask.unsqueeze(1)).amax(dim=-1)  # (B, T)
        to_passage = masked_softmax(closest, passage_mask)
        summary = to_passage.unsqueeze(1) @ passage  # (B, 1, D)
        return torch.cat([passage, asked, passage * asked, passage * summary], dim=-1)


class SelfAttention(nn.Module):
    """Gives each token of a passage what is like it elsewhere in the passage."""

    def __init__(self, *, dim: int) -> None:
        super().__init__()
        self.output_dim = 3 * dim
        self.other_weights = _start_weights(dim)
        self.product_weights = _start_weights(dim)

    def forward(self, passage: Tensor, *, mask: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, 3D); a place that is no token has anything."""
        likeness = compare_all(
            passage,
            passage,
            other_weights=self.other_weights,
            product_weights=self.product_weights,
        )  # (B, T, T)
        # A token is most like itself, and would see nothing else.
        is_other = ~torch.eye(passage.shape[1], dtype=torch.bool, device=passage.device)
        others = masked_softmax(likeness, mask.unsqueeze(1) & is_other) @ passage
        return torch.cat([passage, others, passage * others], dim=-1)


def compare_all(
    tokens: Tensor, others: Tensor, *, other_weights: Tensor, product_weights: Tensor
) -> Tensor:
    """Return w2.y + w3.(x * y) of all pairs: (B, T, J) from (B, T, D) and (B, J, D).

    As a product of two matrices: the (B, T, J, D) products themselves would take gigabytes.
    """
    products = (tokens * product_weights) @ others.transpose(1, 2)
    return products + (others @ other_weights).unsqueeze(1)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Share 1 among the last dimension's places where `mask` is; where it nowhere is, all are 0."""
    return _hide(scores, mask).softmax(dim=-1) * mask


def _hide(scores: Tensor, mask: Tensor) -> Tensor:
    # The least number, not -inf, of which a row without any place would make NaN.
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min)


def _start_weights(dim: int) -> nn.Parameter:
    """Begin so that the products' sum varies as much as one of them."""
    bound = (3 / dim) ** 0.5
    return nn.Parameter(torch.empty(dim).uniform_(-bound, bound))
