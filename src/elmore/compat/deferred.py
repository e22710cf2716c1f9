"""Computations that wait for their input, which a session feeds later."""

import operator
from collections.abc import Callable
from typing import Any, Self

# What is known in one run of a session: fed values, and results.
Known = dict["Deferred", Any]
# What a session keeps from run to run.
States = dict["Deferred", Any]


class Deferred:
    """The result of a function, some of whose arguments are deferred."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._function = function
        self._arguments = arguments

    def __getitem__(self, key: Any) -> "Deferred":
        return Deferred(operator.getitem, self, key)

    def __iter__(self) -> Self:
        raise TypeError("the length of a deferred result is not known; run it in a session first")

    def compute(self, known: Known, states: States) -> Any:
        """Return the result, which is computed once per run."""
        if self not in known:
            arguments = [
                each.compute(known, states) if isinstance(each, Deferred) else each
                for each in self._arguments
            ]
            known[self] = self._call(arguments, states)
        return known[self]

    def _call(self, arguments: list[Any], states: States) -> Any:  # noqa: ARG002
        return self._function(*arguments)


class Recurrent(Deferred):
    """A result that depends on a state; the function takes it and also returns the next one."""

    def _call(self, arguments: list[Any], states: States) -> Any:
        result, states[self] = self._function(*arguments, states.get(self))
        return result
