"""The error that AllenNLP raises for wrong settings."""

__all__ = ["ConfigurationError"]


class ConfigurationError(Exception):
    """A wrong setting; `str` returns the message in quotes, as in AllenNLP."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return repr(self.message)
