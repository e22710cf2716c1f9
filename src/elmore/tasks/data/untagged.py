"""Sentences to predict tags for: text, or columns whose tags are ignored."""

from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from pathlib import Path

from elmore.tasks.data.columns import TaggedSentence, is_span_tag, read_columns, read_rows
from elmore.tasks.data.lines import has_suffix, read_lines, refuse_none
from elmore.text.files import TextForm, read_sentences
from elmore.text.language import Language

# By chance, a few lines of a text may have the same number of tokens, but not this many, and
# they rarely have tabs or end in tags.
_LINES_LOOKED_AT, _MIN_LINES = 20, 3


class UntaggedForm(StrEnum):
    """The format of a file to predict on."""

    AUTO = "auto"
    """CoNLL-U by its name; columns if all lines have the same number of them, and there are tabs,
    span tags or 20 such lines; otherwise raw text."""
    COLUMNS = "columns"
    """As in training data; only the first column is used."""
    RAW = "raw"
    TOKENIZED = "tokenized"
    """One sentence per line, with tokens separated by tabs, or by spaces if there are no tabs."""


def read_untagged(
    path: Path,
    *,
    form: UntaggedForm,
    language: Language = Language.EN,
    is_numbered: bool = False,
) -> Iterator[TaggedSentence]:
    """Yield the sentences of a text or of columns, without tags."""
    sentences = (
        TaggedSentence(tokens=tokens, tags=[])
        for tokens in _read_tokens(path, form=form, language=language, is_numbered=is_numbered)
        if tokens
    )
    return refuse_none(sentences, complaint=f"{path} has no sentences; give text or columns")


def _read_tokens(
    path: Path, *, form: UntaggedForm, language: Language, is_numbered: bool
) -> Iterator[list[str]]:
    if form is UntaggedForm.AUTO:
        form = UntaggedForm.COLUMNS if _has_columns(path) else UntaggedForm.RAW
    if form is not UntaggedForm.COLUMNS:
        return read_sentences(path, form=TextForm(form), language=language)
    if has_suffix(path, ".conllu"):
        return read_sentences(path, form=TextForm.CONLLU)
    tagged = read_columns(path, column=2, is_numbered=is_numbered)
    return (sentence.tokens for sentence in tagged)


def _has_columns(path: Path) -> bool:
    if has_suffix(path, ".conllu"):
        return True
    rows = [columns for _, columns in islice(read_rows(path), _LINES_LOOKED_AT)]
    counts = list(map(len, rows))
    if len(rows) < _MIN_LINES or not min(counts) == max(counts) >= 2:
        return False
    is_long = len(rows) == _LINES_LOOKED_AT
    return is_long or _has_tabs(path) or all(is_span_tag(columns[-1]) for columns in rows)


def _has_tabs(path: Path) -> bool:
    lines = (line for _, line in read_lines(path) if line.strip())
    return any("\t" in line for line in islice(lines, _LINES_LOOKED_AT))
