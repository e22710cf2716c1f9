"""The drop-in modules under their old names, for one test."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from elmore import compat
from elmore.compat.old_imports import OldModule


@contextmanager
def installed() -> Iterator[list[str]]:
    """Install the modules; afterwards, the old names cannot be imported."""
    finders = list(sys.meta_path)
    forget_old_modules()
    yield compat.install()
    sys.meta_path[:] = finders
    forget_old_modules()


def forget_old_modules() -> None:
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in compat.LIBRARIES or isinstance(module, OldModule):
            del sys.modules[name]
