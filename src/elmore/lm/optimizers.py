"""Optimizers for dense weights, and for sparse gradients that touch only some rows."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from elmore.errors import ConfigError
from elmore.lm.muon import Muon, Share
from elmore.lm.schedule import find_learning_rate
from elmore.lm.settings import OptimizerName, OptimizerSettings

ADAGRAD_EPSILON = 1e-10
ADAM_BETAS, ADAM_EPSILON = (0.9, 0.999), 1e-8


class Rule(Protocol):
    """One of torch's optimizers, or one of those below."""

    param_groups: list[dict[str, Any]]
    state: Any

    def step(self) -> Any:
        """Update the weights."""


class Optimizer:
    """Adagrad, AdamW or Muon, with gradient clipping and a learning rate schedule.

    A step has two halves: `prepare` does everything that needs other processes, and `step` updates
    the weights. A process that loses the others in between still has the weights of the last step.
    """

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        *,
        sparse: Iterable[str],
        settings: OptimizerSettings,
        num_steps: int,
        rank: int = 0,
        num_processes: int = 1,
    ) -> None:
        self.settings = settings
        self.num_steps = num_steps
        self._parameters = dict(parameters)
        matrices = _find_matrices(self._parameters, settings)
        others = {name: weight for name, weight in self._parameters.items() if name not in matrices}
        self._rules = _make_optimizers(others, set(sparse), settings)
        self._muon: Muon | None = None
        if matrices:
            self._muon = Muon(
                list(matrices.values()),
                weight_decay=settings.weight_decay,
                rank=rank,
                num_processes=num_processes,
            )
            self._rules.append(self._muon)

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        return find_learning_rate(self.settings, step, num_steps=self.num_steps)

    def prepare(self, step: int, *, share: Share | None = None) -> float:
        """Clip the gradients, compute Muon's updates, and return the norm before clipping.

        `share` sums tensors over the processes of the run.
        """
        norm = clip_gradients(self._parameters.values(), self.settings.max_gradient_norm)
        if not math.isfinite(norm):
            raise ConfigError(
                f"the gradients of step {step + 1} are not finite; start a new run with an "
                f"optimizer.learning_rate below {self.learning_rate(step):g}"
            )
        if self._muon is not None:
            self._muon.prepare(share)
        return norm

    def step(self, step: int) -> float:
        """Update the weights, clear their gradients, return the rate; call `prepare` first."""
        rate = self.learning_rate(step)
        for rule in self._rules:
            for group in rule.param_groups:
                group["lr"] = rate
            rule.step()
        for parameter in self._parameters.values():
            parameter.grad = None
        return rate

    def tensors(self) -> dict[str, Tensor]:
        """Return the optimizer state, by the names of the weights."""
        return {
            f"{name}|{key}": value
            for name, parameter in self._parameters.items()
            for rule in self._rules
            if parameter in rule.state
            for key, value in rule.state[parameter].items()
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Load what `tensors` returned."""
        for full_name, value in tensors.items():
            name, _, key = full_name.rpartition("|")
            parameter = self._parameters[name]
            rule = next(rule for rule in self._rules if _has_parameter(rule, parameter))
            device = "cpu" if key == "step" else parameter.device
            rule.state[parameter][key] = value.to(device, copy=True)


def _has_parameter(rule: Rule, parameter: nn.Parameter) -> bool:
    return any(own is parameter for group in rule.param_groups for own in group["params"])


class SparseOptimizer:
    """An optimizer for sparse gradients; the state of rows without a gradient does not change.

    `begin` returns the initial state of a weight, `find_change` the update of rows at a learning
    rate of 1. torch has such optimizers too, but they validate every sparse tensor again, or warn
    that they don't.
    """

    def __init__(
        self,
        parameters: list[nn.Parameter],
        *,
        begin: Callable[[Tensor], dict[str, Tensor]],
        find_change: Callable[[Tensor, Tensor, dict[str, Tensor]], Tensor],
    ) -> None:
        self.param_groups: list[dict[str, Any]] = [{"params": parameters, "lr": 0.0}]
        self.state: dict[Any, dict[str, Any]] = {
            parameter: begin(parameter.detach()) for parameter in parameters
        }
        self._find_change = find_change

    @torch.no_grad()
    def step(self) -> None:
        """Update the rows that have a gradient."""
        for parameter in self.param_groups[0]["params"]:
            if parameter.grad is not None:
                rows, gradient = parameter.grad.indices()[0], parameter.grad.values()
                change = self._find_change(gradient, rows, self.state[parameter])
                parameter.index_add_(0, rows, change, alpha=-self.param_groups[0]["lr"])


def begin_adagrad(weight: Tensor) -> dict[str, Tensor]:
    """Return Adagrad's sums of squares, which start at 1."""
    return {"sum": torch.ones_like(weight)}


def change_by_adagrad(gradient: Tensor, rows: Tensor, kept: dict[str, Tensor]) -> Tensor:
    """Return Adagrad's update (Duchi et al., 2011)."""
    total = kept["sum"][rows].addcmul_(gradient, gradient)
    kept["sum"][rows] = total
    return gradient / total.sqrt_().add_(ADAGRAD_EPSILON)


def begin_adam(weight: Tensor) -> dict[str, Tensor]:
    """Return Adam's step count and moments."""
    return {
        "step": torch.zeros((), dtype=torch.int64),
        "mean": torch.zeros_like(weight),
        "square": torch.zeros_like(weight),
    }


def change_by_adam(gradient: Tensor, rows: Tensor, kept: dict[str, Tensor]) -> Tensor:
    """Return Adam's update (Kingma and Ba, 2015)."""
    kept["step"] += 1
    step = int(kept["step"])
    mean = kept["mean"][rows].lerp_(gradient, 1 - ADAM_BETAS[0])
    square = kept["square"][rows].lerp_(gradient.square(), 1 - ADAM_BETAS[1])
    kept["mean"][rows], kept["square"][rows] = mean, square
    mean = mean / (1 - ADAM_BETAS[0] ** step)
    return mean / (square / (1 - ADAM_BETAS[1] ** step)).sqrt_().add_(ADAM_EPSILON)


def _find_matrices(
    parameters: Mapping[str, nn.Parameter], settings: OptimizerSettings
) -> dict[str, nn.Parameter]:
    """Return the weights that Muon updates: large matrices that map vectors to vectors."""
    if settings.name is not OptimizerName.MUON:
        return {}
    return {
        name: weight
        for name, weight in parameters.items()
        if weight.dim() == 2
        and settings.muon_min_side <= min(weight.shape) <= settings.muon_max_side
        and not _is_table(name)
    }


def _is_table(name: str) -> bool:
    """Return whether a weight is an embedding table, of which a step uses only some rows."""
    return name.startswith("softmax.") or name.endswith("embedding.weight")


def _make_optimizers(
    parameters: Mapping[str, nn.Parameter], sparse: set[str], settings: OptimizerSettings
) -> list[Rule]:
    is_adagrad = settings.name is OptimizerName.ADAGRAD
    rules: list[Rule] = []
    dense = {name: weight for name, weight in parameters.items() if name not in sparse}
    if dense:
        rules.append(_make_adagrad(dense) if is_adagrad else _make_adamw(dense, settings))
    rows = [weight for name, weight in parameters.items() if name in sparse]
    if rows:
        rules.append(
            SparseOptimizer(rows, begin=begin_adagrad, find_change=change_by_adagrad)
            if is_adagrad
            else SparseOptimizer(rows, begin=begin_adam, find_change=change_by_adam)
        )
    return rules


def _make_adagrad(weights: Mapping[str, nn.Parameter]) -> torch.optim.Optimizer:
    # Sums start at 1, as in bilm-tf, so that the first steps are not the largest.
    return torch.optim.Adagrad(
        list(weights.values()), initial_accumulator_value=1.0, eps=ADAGRAD_EPSILON, foreach=False
    )


def _make_adamw(
    weights: Mapping[str, nn.Parameter], settings: OptimizerSettings
) -> torch.optim.Optimizer:
    decays = {
        name: weight.dim() > 1 and not name.startswith("softmax.")
        for name, weight in weights.items()
    }
    groups = [
        {
            "params": [weight for name, weight in weights.items() if decays[name] == has_decay],
            "weight_decay": settings.weight_decay if has_decay else 0.0,
        }
        for has_decay in (True, False)
    ]
    return torch.optim.AdamW(groups, betas=ADAM_BETAS, eps=ADAM_EPSILON, foreach=False)


@torch.no_grad()
def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> float:
    """Clip the global gradient norm to `max_norm` in place; return the norm before clipping."""
    gradients = []
    for parameter in parameters:
        if parameter.grad is not None:
            if parameter.grad.is_sparse:
                parameter.grad = parameter.grad.coalesce()
            gradients.append(parameter.grad)
    values = [g.values() if g.is_sparse else g for g in gradients]
    if not values:
        return 0.0
    norms = torch.stack([torch.linalg.vector_norm(value) for value in values])
    norm = float(torch.linalg.vector_norm(norms.cpu().double()))  # some devices have no float64
    if norm > max_norm:
        for value in values:
            value.mul_(max_norm / norm)
    return norm
