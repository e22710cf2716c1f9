"""Examples to predict on that are given in Python as plain strings and lists."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from elmore.errors import DataError
from elmore.tasks.data.lines import quote
from elmore.text.language import Language
from elmore.text.tokens import split_tokens
from elmore.wording import shorten


def check_iterable(examples: Any) -> Iterable[Any]:
    """Return `examples`; refuse a single text or mapping, and anything that is not iterable."""
    if isinstance(examples, str | bytes | Mapping):
        raise DataError(
            f"predict takes a list of examples, got one {_name_type(examples)} "
            f"({_show(examples)}); put it into a list: [example]"
        )
    if not isinstance(examples, Iterable):
        raise DataError(
            f"predict takes a list of examples, got {_name_type(examples)}; give a list, or "
            "model.read(path) for a file"
        )
    return examples


def refuse_input(given: Any, *, task: str, expected: str) -> DataError:
    """Return the error for an invalid example; `expected` describes a valid one."""
    return DataError(
        f"an example of {task} must be {expected}, got {_name_type(given)} ({_show(given)}); "
        "for a file, give model.read(path)"
    )


def take_tokens(given: Any, *, language: Language = Language.EN) -> list[str] | None:
    """Return the tokens of a string or a list of tokens; None if it is neither, or empty."""
    if isinstance(given, str):
        return split_tokens(given, language=language) or None
    if not is_list(given) or not all(isinstance(token, str) and token for token in given):
        return None
    return list(given) or None


def is_list(given: Any) -> bool:
    """Return whether `given` is a sequence but not a string."""
    return isinstance(given, Sequence) and not isinstance(given, str | bytes)


def is_text(given: Any) -> bool:
    """Return whether `given` is a string that is not blank."""
    return isinstance(given, str) and bool(given.strip())


def _name_type(given: Any) -> str:
    return {"str": "string", "NoneType": "None"}.get(type(given).__name__, type(given).__name__)


def _show(given: Any) -> str:
    return quote(given) if isinstance(given, str) else shorten(repr(given))
