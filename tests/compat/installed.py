"""The drop-in modules under their old names, for one test."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from elmore import compat


@contextmanager
def installed() -> Iterator[list[str]]:
    """Install the modules; afterwards, the old names cannot be imported."""
    finders = list(sys.meta_path)
    forget_old_modules()
    yield compat.install()
    sys.meta_path[:] = finders
    forget_old_modules()


def forget_old_modules() -> None:
    for name in list(sys.modules):
        if name.split(".")[0] in compat.LIBRARIES:
            del sys.modules[name]
