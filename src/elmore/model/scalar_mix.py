"""Weigh the layers of a biLM into one vector per token (Peters et al., 2018, eq. 1)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class ScalarMix(nn.Module):
    """`scale * sum(softmax(weights)[k] * layers[k])`; a task learns `weights` and `scale`."""

    def __init__(
        self,
        *,
        num_layers: int,
        normalizes: bool = False,
        initial_weights: Sequence[float] | None = None,
        trainable: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if initial_weights is not None and len(initial_weights) != num_layers:
            raise ValueError(
                f"expected {num_layers} initial weights, one a layer, got {len(initial_weights)}"
            )
        start = (
            torch.zeros(num_layers)
            if initial_weights is None
            else torch.tensor([float(weight) for weight in initial_weights])
        )
        self.weights = nn.Parameter(start, requires_grad=trainable)
        self.scale = nn.Parameter(torch.ones(()), requires_grad=trainable)
        self.normalizes = normalizes
        self.dropout = nn.Dropout(dropout)

    def forward(self, layers: Tensor | Sequence[Tensor], mask: Tensor | None = None) -> Tensor:
        """Mix (L, ..., D) into (..., D); `mask` (...) tells which positions layer norm counts."""
        if len(layers) != len(self.weights):
            raise ValueError(f"expected {len(self.weights)} layers to mix, got {len(layers)}")
        shares = self.weights.softmax(dim=0)
        # Added one by one: a matrix product would let a position's bits depend on the others.
        mixed = shares[0] * self._prepare(layers[0], mask)
        for share, layer in zip(shares[1:], layers[1:], strict=True):
            mixed = mixed + share * self._prepare(layer, mask)
        return self.dropout(self.scale * mixed)

    def penalty(self, strength: float) -> Tensor:
        """Return `strength * |weights|^2`, for a task to add to its loss."""
        return strength * self.weights.square().sum()

    def _prepare(self, layer: Tensor, mask: Tensor | None) -> Tensor:
        """Normalize a layer if asked to, by one mean and variance of all its real positions.

        AllenNLP takes them over the whole batch, so a vector then depends on its batch-mates.
        """
        if not self.normalizes:
            return layer
        real = layer if mask is None else layer[mask]
        mean = real.mean()
        variance = (real - mean).square().mean()
        return (layer - mean) / torch.sqrt(variance + 1e-12)
