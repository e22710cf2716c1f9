"""Errors that users can cause and fix; the command line prints one sentence, exit status 2."""


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
