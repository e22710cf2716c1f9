"""Leave code out of `torch.compile`."""

from collections.abc import Callable
from functools import wraps
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
