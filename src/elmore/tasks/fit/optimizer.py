"""Who learns how fast: the task network, and the biLM's layers if they learn too.

Lower layers learn more slowly and later, as they know what is common to most tasks (Howard and
Ruder, 2018: discriminative fine-tuning and gradual unfreezing).
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from elmore.tasks.fit.settings import ElmoSettings, TaskTrainingSettings
from elmore.tasks.inputs.trained_layers import TrainedLayers


class TaskOptimizer:
    """AdamW over the network's weights, and over the biLM's layer by layer."""

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
        """Let those layers of the biLM learn whose time has come; return how many do."""
        waiting = self._unfreeze_epochs
        num_learning = math.floor(epoch / waiting) if waiting else len(self._lower)
        for depth, weights in enumerate(self._lower):
            for weight in weights:
                weight.requires_grad_(depth < num_learning)
        return min(num_learning, len(self._lower))

    def step(self, loss: Tensor, *, rate_share: float) -> None:
        """Change the weights by a loss's gradient."""
        for group, rate in zip(self._adam.param_groups, self._rates, strict=True):
            group["lr"] = rate * rate_share
        self._adam.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self._weights, self._max_norm)
        self._adam.step()

    def tensors(self) -> dict[str, Tensor]:
        """Return what the optimizer remembers, weight by weight."""
        return {
            f"{number}.{name}": tensor
            for number, weight in enumerate(self._weights)
            for name, tensor in self._adam.state.get(weight, {}).items()
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Remember what another one did."""
        for key, tensor in tensors.items():
            number, _, name = key.partition(".")
            weight = self._weights[int(number)]
            self._adam.state[weight][name] = tensor.to(weight, copy=True)
