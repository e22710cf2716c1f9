"""Sentences as users give them in Python: the path of a text file, or a list."""

from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, TypeGuard

from elmore.errors import ConfigError, DataError
from elmore.text.files import TextForm, read_text
from elmore.text.language import Language
from elmore.text.line_sentences import NumberedSentence
from elmore.text.tokens import parse_sentence

GivenSentence = str | Sequence[str] | NumberedSentence


def check_sentences(sentences: Any, *, what: str = "sentences") -> Iterable[Any]:
    """Return a collection of sentences; raise an error for anything else."""
    name = type(sentences).__name__
    if isinstance(sentences, Mapping | Set) or name == "DataFrame":
        raise DataError(
            f"got a {name} where a list of {what} was expected; give a list, or one column of "
            "the table"
        )
    if isinstance(sentences, str | bytes) or not isinstance(sentences, Iterable):
        raise DataError(
            f"got {sentences!r:.40} where a list of {what} was expected; give a list"
            + (" of strings or of token lists" if what == "sentences" else "")
        )
    return sentences


def open_input(
    sentences: str | Path | Iterable[GivenSentence],
    *,
    form: TextForm | str | None = None,
    language: Language = Language.EN,
    keeps_document_ends: bool = False,
) -> Iterable[GivenSentence]:
    """Return the sentences of a list, or those of the text file at a path."""
    if not isinstance(sentences, str | Path):
        if form is not None:
            raise ConfigError(
                f"form is {form!r:.60}, but a list of sentences was given; give the path of a text "
                "file, or leave form out"
            )
        return check_sentences(sentences)
    path = Path(sentences)
    if not _exists(path):
        raise DataError(
            f"there is no file {str(sentences)!r:.200}; give the path of a text file, or a list of "
            "sentences"
        )
    return read_text(
        path,
        form=read_form(form),
        language=language,
        keeps_document_ends=keeps_document_ends,
    )


def read_form(form: TextForm | str | None) -> TextForm | None:
    """Return the form that was given, if any; raise an error for an unknown one."""
    if form is not None and form not in list(TextForm):
        raise ConfigError(f"form is {form!r:.60}; choose one of: {', '.join(TextForm)}")
    return None if form is None else TextForm(form)


def parse_given(sentence: GivenSentence, *, language: Language) -> list[str]:
    """Return the tokens of a sentence."""
    if isinstance(sentence, NumberedSentence):
        return sentence.tokens
    return parse_sentence(sentence, language=language)


def is_folder(given: object) -> TypeGuard[str | Path]:
    """Return whether the path of a folder was given, and not sentences."""
    return isinstance(given, str | Path) and _exists(Path(given)) and Path(given).is_dir()


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a sentence may be too long for a path, or have a NUL
        return False
