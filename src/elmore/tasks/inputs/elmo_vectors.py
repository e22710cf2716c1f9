"""One ELMo vector per token, mixed from a biLM's layers, for one use in a task network.

Shapes: L layers, B sentences, T tokens, D a layer.
"""

from enum import StrEnum

import torch
from torch import Tensor, nn

from elmore.model.scalar_mix import ScalarMix


class LayerUse(StrEnum):
    """The layers that a task uses."""

    MIX = "mix"
    """All of them, with weights that the task learns."""
    AVERAGE = "average"
    """All of them, with equal weights."""
    TOP = "top"
    """Only the top layer, as before ELMo."""


class ElmoVectors(nn.Module):
    """`scale * sum(share * layer)` and dropout; `use` decides what is learned."""

    def __init__(
        self,
        *,
        num_layers: int,
        layer_dim: int,
        use: LayerUse = LayerUse.MIX,
        normalizes: bool = False,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.output_dim = layer_dim
        self.use = use
        self.mix = ScalarMix(
            num_layers=num_layers if use is not LayerUse.TOP else 1,
            normalizes=normalizes,
        )
        # As in the paper's comparison, top and average learn gamma too; their weights are fixed.
        self.mix.weights.requires_grad_(use is LayerUse.MIX)
        self.dropout = nn.Dropout(dropout)

    def forward(self, layers: Tensor, mask: Tensor) -> Tensor:
        """Mix (L, B, T, D) into (B, T, D), zero at padding."""
        used = layers[-1:] if self.use is LayerUse.TOP else layers
        return self.dropout(self.mix(used, mask)) * mask.unsqueeze(-1)

    def penalty(self, strength: float) -> Tensor:
        """Return `strength * |weights|^2`; a large strength keeps the shares equal."""
        return self.mix.penalty(strength)

    @property
    def shares(self) -> list[float]:
        """The weight of each layer in the mix, after the softmax."""
        with torch.no_grad():
            return self.mix.weights.softmax(dim=0).tolist()
