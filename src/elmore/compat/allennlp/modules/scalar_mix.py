"""A weighted sum of layers, with the parameter names of AllenNLP."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmore.compat.allennlp.common.checks import ConfigurationError

__all__ = ["ScalarMix"]


class ScalarMix(nn.Module):
    """`gamma * sum(softmax(scalar_parameters)[k] * tensors[k])`."""

    def __init__(
        self,
        mixture_size: int,
        do_layer_norm: bool = False,
        initial_scalar_parameters: Sequence[float] | None = None,
        trainable: bool = True,
    ) -> None:
        super().__init__()
        self.mixture_size = mixture_size
        self.do_layer_norm = do_layer_norm
        initial = initial_scalar_parameters
        if initial is None:
            initial = [0.0] * mixture_size
        if len(initial) != mixture_size:
            raise ConfigurationError(
                f"there are {len(initial)} initial_scalar_parameters, {initial}, but mixture_size "
                f"is {mixture_size}"
            )
        self.scalar_parameters = nn.ParameterList(
            nn.Parameter(torch.tensor([float(number)]), requires_grad=trainable)
            for number in initial
        )
        self.gamma = nn.Parameter(torch.ones(1), requires_grad=trainable)

    def forward(self, tensors: Sequence[Tensor], mask: Tensor | None = None) -> Tensor:
        """Mix tensors (..., D); layer norm needs the `mask` (...) of real positions."""
        if len(tensors) != self.mixture_size:
            raise ConfigurationError(
                f"{len(tensors)} tensors were passed to a mix of {self.mixture_size} tensors"
            )
        if self.do_layer_norm:
            assert mask is not None, "do_layer_norm needs a mask"
            tensors = [_normalize(tensor, mask) for tensor in tensors]
        weights = torch.cat(list(self.scalar_parameters)).softmax(dim=0)
        mixed = weights[0] * tensors[0]
        for weight, tensor in zip(weights[1:], tensors[1:], strict=True):
            mixed = mixed + weight * tensor
        return self.gamma * mixed


def _normalize(tensor: Tensor, mask: Tensor) -> Tensor:
    """Normalize all positions by the mean and variance of the real ones in the batch."""
    real = tensor[mask.bool()]
    return (tensor - real.mean()) / torch.sqrt(real.var(correction=0) + 1e-12)
