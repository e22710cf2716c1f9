"""Errors that users can cause and fix: the command line prints one sentence, exit status 2."""

import sys
import warnings
from types import FrameType


class ElmoreError(Exception):
    """Base class of all errors that the user can fix."""


class ConfigError(ElmoreError):
    """A setting is unknown, contradictory or out of range."""


class DataError(ElmoreError):
    """Text or a vector file is missing, damaged or in the wrong format."""


class ModelError(ElmoreError):
    """A model's files are missing, damaged, malicious or not supported."""


class MissingExtraError(ElmoreError):
    """An optional library is needed but not installed."""

    def __init__(self, *, needed_for: str, extra: str) -> None:
        super().__init__(f"{needed_for} needs an optional library: pip install 'elmore[{extra}]'")


class DataWarning(UserWarning):
    """The data looks wrong but can be used; the command line prints this as one line."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn, and show the line of the user's program from which elmore was called."""
    frame: FrameType | None = sys._getframe()
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("elmore."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
