"""Build a network without initializing its weights, because they will be loaded."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode


@contextmanager
def without_weights() -> Iterator[None]:
    """Build modules with shapes only: no memory is allocated, no weights are drawn."""
    with torch.device("meta"), _SkipInitializing():
        yield


def weight_shapes(network: nn.Module) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every weight."""
    return {name: tuple(weight.shape) for name, weight in network.state_dict().items()}


class _SkipInitializing(TorchFunctionMode):
    # Initializing a weight on the meta device makes torch import its compiler: 1.4 seconds.
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))
