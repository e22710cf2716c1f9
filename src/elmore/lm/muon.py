"""Muon: momentum with all singular values brought close to one (Jordan et al., 2024).

AdamW scales each element of a gradient separately; Muon treats a matrix as a whole, so directions
that are rare in the gradient are learned as fast as frequent ones.

Shapes: M rows and N columns of a matrix, N the smaller.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from elmore.kernels.products import multiply

MOMENTUM = 0.95
# An AdamW update has a root mean square of about 0.2 times the learning rate (Liu et al., 2025);
# with the same scale, one learning rate suits both.
UPDATE_SCALE = 0.2

# Each step applies `a x + b x^3 + c x^5` to every singular value x. The coefficients of step k are
# those that bring the interval reached by step k - 1 closest to 1, starting with [0.001, 1]; after
# the last step that interval is [0.887, 1.113]. tests/lm/test_muon.py derives them.
COEFFICIENTS = (
    (8.4703, -25.1081, 18.6293),
    (4.1828, -3.1087, 0.5806),
    (3.9619, -2.9541, 0.5630),
    (3.2866, -2.4647, 0.5074),
    (2.2737, -1.6447, 0.4162),
)

Share = Callable[[Sequence[Tensor]], None]


class Muon:
    """Computes the updates of all matrices first, then applies them.

    In between, the processes of a run exchange updates: each computes those of every
    `num_processes`-th matrix, so that all of them apply the same bits, even on different CPUs.
    """

    def __init__(
        self,
        matrices: Sequence[nn.Parameter],
        *,
        weight_decay: float = 0.0,
        rank: int = 0,
        num_processes: int = 1,
    ) -> None:
        self.param_groups: list[dict[str, Any]] = [
            {"params": list(matrices), "lr": 0.0, "weight_decay": weight_decay}
        ]
        self.state: dict[Any, dict[str, Any]] = {
            matrix: {"momentum": torch.zeros_like(matrix)} for matrix in matrices
        }
        self._rank = rank
        self._num_processes = num_processes
        self._changes: list[Tensor] = []

    @torch.no_grad()
    def prepare(self, share: Share | None = None) -> None:
        """Compute the updates for the next `step`; no weight or momentum changes yet.

        `share` sums tensors over the processes.
        """
        self._changes = []
        for number, matrix in enumerate(self.param_groups[0]["params"]):
            if matrix.grad is not None and number % self._num_processes == self._rank:
                momentum = self._next_momentum(matrix)
                # Nesterov momentum: look one step ahead, assuming the same gradient.
                ahead = matrix.grad.lerp(momentum, MOMENTUM)
                scale = UPDATE_SCALE * math.sqrt(max(matrix.shape))
                self._changes.append(orthogonalize(ahead).mul_(scale))
            else:
                self._changes.append(torch.zeros_like(matrix))
        if share is not None:
            share(self._changes)

    @torch.no_grad()
    def step(self) -> None:
        """Apply the updates that `prepare` computed."""
        group = self.param_groups[0]
        for matrix, change in zip(group["params"], self._changes, strict=True):
            if matrix.grad is None:
                continue
            self.state[matrix]["momentum"] = self._next_momentum(matrix)
            matrix.mul_(1.0 - group["lr"] * group["weight_decay"])
            matrix.add_(change, alpha=-group["lr"])
        self._changes = []

    def _next_momentum(self, matrix: nn.Parameter) -> Tensor:
        assert matrix.grad is not None
        return self.state[matrix]["momentum"].lerp(matrix.grad, 1.0 - MOMENTUM)


def orthogonalize(matrix: Tensor) -> Tensor:
    """Bring the singular values of a (M, N) matrix close to 1; keep its singular vectors.

    Each step multiplies the matrix by a polynomial of its (N, N) Gram matrix. Such polynomials
    commute, so their product is computed first and applied to the matrix once.
    """
    if matrix.shape[0] < matrix.shape[1]:
        return orthogonalize(matrix.T).T
    scaled = matrix / matrix.norm().clamp_min(1e-20)  # no singular value is above 1
    gram = multiply(scaled.T, scaled)
    factor = last = _polynomial(gram, *COEFFICIENTS[0])
    for coefficients in COEFFICIENTS[1:]:
        gram = multiply(multiply(last, gram), last)
        last = _polynomial(gram, *coefficients)
        factor = multiply(factor, last)
    return multiply(scaled, factor)


def _polynomial(gram: Tensor, a: float, b: float, c: float) -> Tensor:
    """Return `a + b gram + c gram^2`."""
    polynomial = multiply(gram, gram).mul_(c).add_(gram, alpha=b)
    polynomial.diagonal().add_(a)
    return polynomial
