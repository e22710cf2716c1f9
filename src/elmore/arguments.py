"""Explain calls with arguments that a function does not take."""

import difflib
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from elmore.errors import ConfigError

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def explain_calls(
    hints: Mapping[str, str] | None = None,
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """Make a function raise a `ConfigError` that says how to call it, instead of a `TypeError`.

    `hints` says what to use instead of an argument that another library has.
    """

    def decorate(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        @wraps(function)
        def call(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
            try:
                return function(*arguments, **named)
            except TypeError:
                mistake = _find_mistake(function, arguments, named, hints or {})
                if mistake is None:  # the error is from inside the function
                    raise
                raise ConfigError(mistake) from None

        return call

    return decorate


def _find_mistake(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    named: Mapping[str, Any],
    hints: Mapping[str, str],
) -> str | None:
    """Return what is wrong with a call; None if the function takes these arguments."""
    import inspect  # noqa: PLC0415  only for errors

    signature = inspect.signature(function)
    try:
        signature.bind(*arguments, **named)
    except TypeError as error:
        reason = str(error)
    else:
        return None
    known = [name for name in signature.parameters if name != "self"]
    name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    for given in named:
        if given not in known:
            return (
                f"{name} has no argument {given!r:.60}; {hints.get(given) or suggest(given, known)}"
            )
    in_order = [
        key for key in known if signature.parameters[key].kind is not inspect.Parameter.KEYWORD_ONLY
    ]
    by_name = [key for key in known if key not in in_order]
    more = f", and by name: {', '.join(by_name)}" if by_name else ""
    return f"{name}: {reason}; it takes {name}({', '.join(in_order)}){more}"


def suggest(given: str, known: list[str]) -> str:
    """Return the known name that was probably meant, or all of them.

    >>> suggest("layer", ["layers", "rows"]), suggest("x", ["layers", "rows"])
    ("did you mean 'layers'?", 'it has: layers, rows')
    """
    close = difflib.get_close_matches(given, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(known)}"
