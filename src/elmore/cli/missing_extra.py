"""Name the extra that a command needs."""

from collections.abc import Iterator
from contextlib import contextmanager

from elmore.errors import MissingExtraError


@contextmanager
def explaining_missing_extra(*, needed_for: str, extra: str) -> Iterator[None]:
    """Import parts of elmore inside; name the extra if one of their libraries is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("elmore"):
            raise
        raise MissingExtraError(needed_for=needed_for, extra=extra) from None
