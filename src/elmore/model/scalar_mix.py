"""Mix the layers of a biLM into one vector per token (Peters et al., 2018, eq. 1)."""

from collections.abc import Sequence
from math import fsum, isfinite, log
from typing import Any, Self

import torch
from torch import Tensor, nn

from elmore.errors import ConfigError, warn_caller

# exp of this is 0 in every precision, and the number itself is exact in every precision.
LOG_OF_ZERO = -1000.0
FLOAT32_MAX = torch.finfo(torch.float32).max


class ScalarMix(nn.Module):
    """`scale * sum(softmax(weights)[k] * layers[k])`; a task learns `weights` and `scale`.

    `initial_logits` are the numbers inside the softmax. For a weighted sum with known weights use
    `ScalarMix.from_weights`.
    """

    def __init__(
        self,
        *refused: object,
        num_layers: int = 0,
        normalizes: bool = False,
        initial_logits: Sequence[float] | None = None,
        trainable: bool = True,
        dropout: float = 0.0,
        initial_weights: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        for given in refused:
            raise ConfigError(
                f"ScalarMix got {given!r:.60} without a name; for a weighted sum use "
                "ScalarMix.from_weights([...]), for a mix to train ScalarMix(num_layers=3)"
            )
        if not isinstance(num_layers, int) or num_layers < 1:
            raise ConfigError(
                f"num_layers is {num_layers!r:.60}; give the number of layers to mix, at least 1"
            )
        if not isinstance(dropout, int | float) or not 0 <= dropout <= 1:
            raise ConfigError(f"dropout is {dropout!r:.60}; give a number from 0 to 1")
        logits = read_logits(initial_logits, initial_weights, num_layers=num_layers)
        start = torch.zeros(num_layers) if logits is None else torch.tensor(logits)
        self.weights = nn.Parameter(start, requires_grad=trainable)
        self.scale = nn.Parameter(torch.ones(()), requires_grad=trainable)
        self.normalizes = normalizes
        self.dropout = nn.Dropout(dropout)

    @classmethod
    def from_weights(
        cls,
        weights: Sequence[float],
        *,
        normalizes: bool = False,
        trainable: bool = True,
        dropout: float = 0.0,
    ) -> Self:
        """Return the mix that computes `sum(weights[k] * layers[k])`, to float32 rounding.

        The weights need not add up to 1. All must have the same sign, because softmax gives
        positive shares and there is one scale. A weight of 0 stays 0 in training.

        >>> ScalarMix.from_weights([0.5, 2.0])(torch.tensor([[10.0], [1.0]])).tolist()
        [7.0]
        """
        numbers = _read_weights(weights)
        total = fsum(numbers)
        mix = cls(
            num_layers=len(numbers),
            normalizes=normalizes,
            initial_logits=[_log_share(number, total=total) for number in numbers],
            trainable=trainable,
            dropout=dropout,
        )
        with torch.no_grad():
            mix.scale.fill_(total)
        return mix

    def forward(self, layers: Tensor | Sequence[Tensor], mask: Tensor | None = None) -> Tensor:
        """Mix (L, ..., D) into (..., D); `mask` (...) selects the positions for normalization."""
        if len(layers) != len(self.weights):
            raise ValueError(f"expected {len(self.weights)} layers to mix, got {len(layers)}")
        shares = self.weights.softmax(dim=0)
        # Add one by one: in a matrix product, the bits of a position would depend on the others.
        mixed = shares[0] * self._prepare(layers[0], mask)
        for share, layer in zip(shares[1:], layers[1:], strict=True):
            mixed = mixed + share * self._prepare(layer, mask)
        return self.dropout(self.scale * mixed)

    def penalty(self, strength: float) -> Tensor:
        """Return `strength * |weights|^2`, a regularizer for the task's loss.

        A layer whose share is 0 does not count: its weight only stands for the logarithm of 0, and
        the layer stays switched off.
        """
        is_used = self.weights.detach().softmax(dim=0) > 0
        return strength * self.weights.where(is_used, 0.0).square().sum()

    def _prepare(self, layer: Tensor, mask: Tensor | None) -> Tensor:
        """Normalize a layer, if enabled, by the mean and variance of all its real positions.

        As in AllenNLP, these are taken over the whole batch, so a vector then depends on its batch.
        """
        if not self.normalizes:
            return layer
        real = layer if mask is None else layer[mask]
        mean = real.mean()
        variance = (real - mean).square().mean()
        return (layer - mean) / torch.sqrt(variance + 1e-12)


def read_logits(logits: Any, old_name: Any, *, num_layers: int) -> list[float] | None:
    """Return the initial logits of a mix, which may be given under their old name."""
    if old_name is not None:
        warn_caller(
            "initial_weights= is now called initial_logits=, because softmax is applied to it",
            FutureWarning,
        )
        logits = old_name if logits is None else logits
    if logits is None:
        return None
    numbers = _read_numbers(logits)
    if len(numbers) != num_layers:
        raise ConfigError(
            f"initial_logits is {logits!r:.60}; give {num_layers} finite numbers, one per layer"
        )
    return numbers


def _read_numbers(given: Any) -> list[float]:
    """Return finite numbers, or none at all if something else was given."""
    listed = given.tolist() if isinstance(given, Tensor) else given
    try:
        numbers = [] if isinstance(listed, str | bytes) else [float(number) for number in listed]
    except (TypeError, ValueError, OverflowError):
        return []
    return numbers if all(map(isfinite, numbers)) else []


def _read_weights(weights: Any) -> list[float]:
    """Return the weights as numbers; raise an error if no mix can have them."""
    numbers = _read_numbers(weights)
    # The scale, their sum, is stored in float32.
    if not numbers or abs(fsum(numbers)) > FLOAT32_MAX:
        raise ConfigError(
            f"weights is {weights!r:.60}; give one finite number per layer, such as [0.2, 0.3, 0.5]"
        )
    if min(numbers) < 0 < max(numbers):
        raise ConfigError(
            f"weights is {weights!r:.60}, with numbers of both signs, which a ScalarMix cannot "
            'have; get all layers with embed(..., layers="all") and add them up yourself'
        )
    return numbers


def _log_share(weight: float, *, total: float) -> float:
    """Return the number that softmax maps to a weight's share of the total."""
    share = weight / total if total else 1.0
    return max(log(share), LOG_OF_ZERO) if share > 0 else LOG_OF_ZERO
