"""The optimizer of a task network, and of the biLM's layers if they are trained too.

Lower layers of the biLM are unfrozen later and have lower learning rates, because they are more
general (Howard and Ruder, 2018: discriminative fine-tuning and gradual unfreezing).
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from elmore.tasks.fit.settings import ElmoSettings, TaskTrainingSettings
from elmore.tasks.inputs.trained_layers import TrainedLayers


class TaskOptimizer:
    """AdamW with one parameter group for the network and one per layer of the biLM."""

    def __init__(
        self,
        network: nn.Module,
        layers: TrainedLayers | None,
        *,
        training: TaskTrainingSettings,
        elmo: ElmoSettings,
    ) -> None:
        self._max_norm = training.max_gradient_norm
        self._unfreeze_epochs = elmo.unfreeze_epochs
        self._lower = list(layers.groups()) if layers is not None else []
        own = [weight for weight in network.parameters() if weight.requires_grad]
        self._groups = [own, *self._lower]
        self._rates = [
            training.learning_rate,
            *(elmo.learning_rate / elmo.rate_decay**depth for depth in range(len(self._lower))),
        ]
        self._weights = [weight for group in self._groups for weight in group]
        self._adam = torch.optim.AdamW(
            [{"params": weights} for weights in self._groups],
            weight_decay=training.weight_decay,
            fused=True,
        )

    def unfreeze(self, epoch: float) -> int:
        """Unfreeze the biLM layers that are due at this (fractional) epoch; return how many are."""
        interval = self._unfreeze_epochs
        num_trained = math.floor(epoch / interval) if interval else len(self._lower)
        for depth, weights in enumerate(self._lower):
            for weight in weights:
                weight.requires_grad_(depth < num_trained)
        return min(num_trained, len(self._lower))

    def step(self, loss: Tensor, *, rate_share: float) -> None:
        """Update the weights by the gradient of a loss."""
        for group, rate in zip(self._adam.param_groups, self._rates, strict=True):
            group["lr"] = rate * rate_share
        self._adam.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self._weights, self._max_norm)
        self._adam.step()

    def tensors(self) -> dict[str, Tensor]:
        """Return the optimizer's state for a checkpoint."""
        return {
            f"{number}.{name}": tensor
            for number, weight in enumerate(self._weights)
            for name, tensor in self._adam.state.get(weight, {}).items()
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the state from a checkpoint."""
        for key, tensor in tensors.items():
            number, _, name = key.partition(".")
            weight = self._weights[int(number)]
            self._adam.state[weight][name] = tensor.to(weight, copy=True)
