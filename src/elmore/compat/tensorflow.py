"""Placeholders and sessions of TensorFlow 1, for programs that run bilm-tf with them.

Nothing else of TensorFlow is here: a program that also computes with it needs the real one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Self

from elmore.compat.deferred import Deferred, States

__all__ = [
    "ConfigProto",
    "Session",
    "global_variables_initializer",
    "int32",
    "int64",
    "placeholder",
    "reset_default_graph",
    "variable_scope",
]


int32, int64 = "int32", "int64"


class Session:
    """Runs what depends on placeholders, and keeps LSTM states from run to run."""

    def __init__(self, target: str = "", graph: Any = None, config: Any = None) -> None:  # noqa: ARG002
        self._states: States = {}

    def run(self, fetches: Any, feed_dict: dict[Deferred, Any] | None = None) -> Any:
        """Compute what is in a list, a tuple or a dict, or one result."""
        known = dict(feed_dict or {})

        def fetch(what: Any) -> Any:
            if isinstance(what, dict):
                return {name: fetch(each) for name, each in what.items()}
            if isinstance(what, list | tuple):
                return type(what)(map(fetch, what))
            if isinstance(what, _Initializer):
                return self._states.clear()
            return what.compute(known, self._states) if isinstance(what, Deferred) else what

        return fetch(fetches)

    def close(self) -> None:
        """Forget the states."""
        self._states.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Initializer:
    """What sets all states to zeros when it is run."""


class ConfigProto(SimpleNamespace):
    """Settings, all of which are ignored."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"gpu_options": SimpleNamespace(), **settings})


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Deferred:
    """Return a value that is fed when a session runs."""

    def refuse() -> None:
        raise ValueError(
            f"no value was fed for the placeholder {name or ''} of type {dtype} and shape {shape}; "
            "put it into feed_dict"
        )

    return Deferred(refuse)


def global_variables_initializer() -> _Initializer:
    """Return what resets the states of a session."""
    return _Initializer()


@contextmanager
def variable_scope(*_: Any, **__: Any) -> Iterator[None]:
    """Do nothing: there are no variables."""
    yield


def reset_default_graph() -> None:
    """Do nothing: there is no graph."""
