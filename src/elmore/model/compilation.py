"""Leave code out of `torch.compile`, and notice `torch.export`."""

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

import torch

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def not_compiled(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Run a function as it is where a network is compiled around it.

    `torch.compiler.disable` itself would import the compiler, which takes seconds, for everyone.
    """

    @wraps(function)
    def run(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        if torch.compiler.is_compiling():
            return torch.compiler.disable(function)(*arguments, **named)
        return function(*arguments, **named)

    return run


def is_exporting() -> bool:
    """Say whether `torch.export` is recording; torch 2.6 cannot tell."""
    return torch.compiler.is_exporting() if hasattr(torch.compiler, "is_exporting") else False


@cache
def register_output(kind: type) -> None:
    """Let exported programs return a dataclass of tensors; torch warns if told twice."""
    torch.export.register_dataclass(kind)
