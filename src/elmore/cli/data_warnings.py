"""Print warnings about the user's data as one line each."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from elmore.errors import DataWarning

if TYPE_CHECKING:
    from collections.abc import Callable


@contextmanager
def printing_data_warnings() -> Iterator[None]:
    """Print each `DataWarning` once, and of several processes in the first only."""
    is_first = os.environ.get("RANK", "0") == "0"
    with warnings.catch_warnings():
        warnings.simplefilter("default" if is_first else "ignore", DataWarning)
        warnings.showwarning = partial(_print, warnings.showwarning)
        yield


def _print(
    others: "Callable[..., None]", message: Warning | str, category: type[Warning], *location: Any
) -> None:
    if issubclass(category, DataWarning):
        print(f"elmore: {message}", file=sys.stderr)
    else:
        others(message, category, *location)
