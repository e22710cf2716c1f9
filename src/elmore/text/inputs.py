"""Sentences and documents as users give them in Python: the path of a text file, or a list."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
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


def check_documents(given: Any, *, language: Language) -> Iterator[list[list[str]]]:
    """Yield documents as lists of sentences; a list of strings is one document.

    Strings inside a document are refused, because they may be sentences or tokens.
    """
    documents = iter(check_sentences(given, what="documents"))
    first = next(documents, None)
    if first is None:
        return
    rest = chain([first], documents)
    if isinstance(first, str):
        yield [_parse_string(sentence, language=language) for sentence in rest]
        return
    for document in rest:
        sentences = list(check_sentences(document, what="tokenized sentences"))
        if any(isinstance(sentence, str | bytes) for sentence in sentences):
            raise DataError(
                f"a document has the sentence {sentences[0]!r:.40}; give documents as lists of "
                "tokenized sentences, such as [[['A', 'sentence', '.']]]"
            )
        yield [parse_sentence(sentence) for sentence in sentences]


def _parse_string(sentence: Any, *, language: Language) -> list[str]:
    if not isinstance(sentence, str):
        raise DataError(
            f"got {sentence!r:.40} in a list of strings; give strings only, or documents as lists "
            "of tokenized sentences"
        )
    return parse_sentence(sentence, language=language)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a sentence may be too long for a path, or have a NUL
        return False
