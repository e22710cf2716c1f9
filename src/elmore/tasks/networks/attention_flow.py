"""Attention between a passage and a question, and self-attention of a passage.

The first is bidirectional attention flow (Seo et al., 2017), the second follows Clark and Gardner
(2018). The similarity of two tokens is `w1.x + w2.y + w3.(x * y)`, without a bias and, in
self-attention, without w1, because both cancel in the softmax over y.

Shapes: B examples, T tokens in the longest passage, J in the longest question, D a token.
"""

import torch
from torch import Tensor, nn

from elmore.tasks.networks.attention import mask_scores, masked_softmax


class AttentionFlow(nn.Module):
    """Adds to each token of a passage what it attends to in the question."""

    def __init__(self, *, dim: int) -> None:
        super().__init__()
        self.output_dim = 4 * dim
        self.passage_weights = _init_weights(dim)
        self.question_weights = _init_weights(dim)
        self.product_weights = _init_weights(dim)

    def forward(
        self, passage: Tensor, question: Tensor, *, passage_mask: Tensor, question_mask: Tensor
    ) -> Tensor:
        """Map (B, T, D) and (B, J, D) to (B, T, 4D); padding has arbitrary values."""
        similarity = compare_all(
            passage,
            question,
            other_weights=self.question_weights,
            product_weights=self.product_weights,
        ) + (passage @ self.passage_weights).unsqueeze(-1)  # (B, T, J)
        to_question = masked_softmax(similarity, question_mask.unsqueeze(1))
        asked = to_question @ question  # (B, T, D)
        # The weight of a passage token is its similarity to the closest question token.
        closest = mask_scores(similarity, question_mask.unsqueeze(1)).amax(dim=-1)  # (B, T)
        to_passage = masked_softmax(closest, passage_mask)
        summary = to_passage.unsqueeze(1) @ passage  # (B, 1, D)
        return torch.cat([passage, asked, passage * asked, passage * summary], dim=-1)


class SelfAttention(nn.Module):
    """Adds to each token of a passage what it attends to elsewhere in the passage."""

    def __init__(self, *, dim: int) -> None:
        super().__init__()
        self.output_dim = 3 * dim
        self.other_weights = _init_weights(dim)
        self.product_weights = _init_weights(dim)

    def forward(self, passage: Tensor, *, mask: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, 3D); padding has arbitrary values."""
        similarity = compare_all(
            passage,
            passage,
            other_weights=self.other_weights,
            product_weights=self.product_weights,
        )  # (B, T, T)
        # A token is most similar to itself and would attend to nothing else.
        is_other = ~torch.eye(passage.shape[1], dtype=torch.bool, device=passage.device)
        others = masked_softmax(similarity, mask.unsqueeze(1) & is_other) @ passage
        return torch.cat([passage, others, passage * others], dim=-1)


def compare_all(
    tokens: Tensor, others: Tensor, *, other_weights: Tensor, product_weights: Tensor
) -> Tensor:
    """Return w2.y + w3.(x * y) of all pairs: (B, T, J) from (B, T, D) and (B, J, D).

    Computed as a matrix product, because a (B, T, J, D) tensor would take gigabytes.
    """
    products = (tokens * product_weights) @ others.transpose(1, 2)
    return products + (others @ other_weights).unsqueeze(1)


def _init_weights(dim: int) -> nn.Parameter:
    """Initialize so that the sum of products has the variance of one of them."""
    bound = (3 / dim) ** 0.5
    return nn.Parameter(torch.empty(dim).uniform_(-bound, bound))
