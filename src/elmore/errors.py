"""Mistakes a user can make and fix; the command line prints them as one sentence, exit status 2."""


class ElmoreError(Exception):
    """Base of every error that the user, not elmore, can put right."""


class ConfigError(ElmoreError):
    """A setting is unknown, contradictory or out of range."""


class DataError(ElmoreError):
    """Text or a vector file is not what it should be."""


class ModelError(ElmoreError):
    """A model's files are missing, damaged, hostile or of a kind that is not supported."""


class MissingExtraError(ElmoreError):
    """An optional library is needed for what was asked."""

    def __init__(self, *, needed_for: str, extra: str) -> None:
        super().__init__(f"{needed_for} needs an optional library: pip install 'elmore[{extra}]'")


class DataWarning(UserWarning):
    """Something in the data is odd; work goes on, and the command line prints it as one line."""
