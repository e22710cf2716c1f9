"""Sentences with one tag a token: CoNLL-U, and columns such as CoNLL-2003's or Weibo NER's."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from elmore.errors import ConfigError, DataError
from elmore.tasks.data.lines import has_suffix, read_lines, refuse_none, shorten, split_columns

# Where CoNLL-U has its tags, the word's number being column 0.
CONLLU_COLUMNS = {"upos": 3, "xpos": 4, "deprel": 7}
NUM_CONLLU_COLUMNS = 10

# CoNLL-2003 and its kin put such a line, with tags of no meaning, before every document.
DOCUMENT_START = "-DOCSTART-"

_WORD_ID = re.compile(r"[0-9]+")
_SKIPPED_ID = re.compile(r"[0-9]+[-.][0-9]+")

# IOB, BIOES, BILOU and BMES.
_SPAN_TAG = re.compile(r"O|[BIESLUM]-.+")
# A character that is a digit itself comes first: "011" is a 0, twelfth character of its word.
_NUMBERED = re.compile(r"(.[^0-9]*)[0-9]+", flags=re.DOTALL)

_CHARACTER_AND_PLACE = re.compile(r".[0-9]{1,2}")
_ROWS_LOOKED_AT = 50

# What a line holds: a token and its tag, or nothing.
_Entry = tuple[str, str] | None
_LineReader = Callable[[list[str], str], _Entry]


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggedSentence:
    """A sentence and one tag a token."""

    tokens: list[str]
    tags: list[str]
    path: str = field(default="", compare=False)
    lines: tuple[int, ...] = field(default=(), compare=False)
    """Where the tokens are, from 1; none of a sentence that is of no file."""

    def name_place(self, token: int) -> str:
        """Return where a token is, for a message."""
        if not self.lines:
            return f"token {token + 1}"
        return f"{self.path}, line {self.lines[token]}"


def read_columns(
    path: Path,
    *,
    column: str | int = "upos",
    has_spans: bool = False,
    is_numbered: bool = False,
) -> Iterator[TaggedSentence]:
    """Read CoNLL-U if `column` is upos, xpos or deprel; with a number, columns counted from 1.

    Plain columns are separated by tabs or else by spaces, and the token is the first of them.
    With `has_spans`, tags must be those of spans, such as O and B-PER. With `is_numbered`, each
    token is followed by its place in its word, as in Weibo NER, which is dropped.
    """
    read_line = _choose_reader(str(column), path)
    sentences = _read(path, read_line, has_spans=has_spans, is_numbered=is_numbered)
    complaint = f"{path} has no tagged sentence; give a file with one token a line"
    return refuse_none(sentences, complaint=complaint)


def read_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and columns of each line that has any; lines between documents do not."""
    for number, columns in _split_lines(path):
        if columns:
            yield number, columns


def looks_numbered(path: Path) -> bool:
    """Tell whether every token is a character and its place in its word, as in Weibo NER."""
    tokens = [columns[0] for _, columns in islice(read_rows(path), _ROWS_LOOKED_AT)]
    is_chinese = any(is_han(token[0]) for token in tokens if token)
    return is_chinese and all(map(_CHARACTER_AND_PLACE.fullmatch, tokens))


def is_han(character: str) -> bool:
    """Tell whether it is Chinese, or a sign of Chinese or Japanese script."""
    return "\u2e80" <= character <= "\u9fff" or "\U00020000" <= character <= "\U0003ffff"


def _split_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and columns of each line; none where a sentence ends."""
    for number, line in read_lines(path):
        columns = split_columns(line) if line.strip() else []
        yield number, [] if columns[:1] == [DOCUMENT_START] else columns


def _read(
    path: Path, read_line: _LineReader, *, has_spans: bool, is_numbered: bool
) -> Iterator[TaggedSentence]:
    entries: list[tuple[int, str, str]] = []
    for number, columns in chain(_split_lines(path), [(0, [])]):
        if columns:
            where = f"{path}, line {number}"
            entry = read_line(columns, where)
            if entry is not None:
                token, tag = entry
                if has_spans:
                    _check_span_tag(tag, where=where)
                token = _drop_place(token, where=where) if is_numbered else token
                entries.append((number, token, tag))
        elif entries:
            lines, tokens, tags = zip(*entries, strict=True)
            yield TaggedSentence(
                tokens=list(tokens), tags=list(tags), path=str(path), lines=tuple(lines)
            )
            entries = []


def _choose_reader(column: str, path: Path) -> _LineReader:
    if column in CONLLU_COLUMNS:
        return lambda columns, where: _read_conllu_line(columns, column=column, where=where)
    if not (column.isascii() and column.isdigit() and int(column) >= 2):
        raise ConfigError(
            f"column is {column!r}; choose {', '.join(CONLLU_COLUMNS)} of CoNLL-U, or for other "
            "files the number of the tag's column, from 2 (the token is column 1)"
        )
    if has_suffix(path, ".conllu"):
        # Its first column is a number, which would be taken for the token.
        raise ConfigError(
            f"column is {column} but {path} is CoNLL-U; choose {', '.join(CONLLU_COLUMNS)}"
        )
    return _PlainReader(number=int(column))


def _read_conllu_line(columns: list[str], *, column: str, where: str) -> _Entry:
    """Leave out comments, multiword ranges (their words follow) and empty nodes (never said)."""
    if columns[0].startswith("#") or _SKIPPED_ID.fullmatch(columns[0]):
        return None
    num_filled = sum(map(bool, columns))  # CoNLL-U leaves none empty: it writes _
    is_word = len(columns) == num_filled == NUM_CONLLU_COLUMNS and _WORD_ID.fullmatch(columns[0])
    if not is_word:
        raise DataError(
            f"{where}: wanted the {NUM_CONLLU_COLUMNS} columns of CoNLL-U, a number first, got "
            f"{num_filled} ({_show(columns)}); mend the line, or if the file is not CoNLL-U, "
            "give the tag's column by its number"
        )
    token, tag = columns[1], columns[CONLLU_COLUMNS[column]]
    if tag == "_":
        raise DataError(
            f"{where}: the word {token!r} has no {column} ('_'); tag it, or choose another column "
            f"({', '.join(CONLLU_COLUMNS)})"
        )
    return token, tag


@dataclass(kw_only=True)
class _PlainReader:
    """Reads lines of a token and other columns, as many in every line."""

    number: int  # of the tag's column, from 1
    num_columns: int | None = None

    def __call__(self, columns: list[str], where: str) -> _Entry:
        # No comments here: '#' is a token like any other.
        if len(columns) < self.number:
            raise DataError(
                f"{where}: wanted a token and its tag in column {self.number}, got {len(columns)} "
                f"column{'s' * (len(columns) != 1)} ({_show(columns)}); mend the line, or choose "
                "another column"
            )
        # Between spaces an empty column is lost, and what follows would be taken for the tag.
        if self.num_columns not in (None, len(columns)):
            raise DataError(
                f"{where}: wanted {self.num_columns} columns as in the lines before, got "
                f"{len(columns)} ({_show(columns)}); fill in what is empty"
            )
        self.num_columns = len(columns)
        token, tag = columns[0], columns[self.number - 1]
        if not token.strip() or not tag.strip():
            raise DataError(
                f"{where}: wanted a token in column 1 and its tag in column {self.number}, got "
                f"{token!r} and {tag!r}; mend the line, or choose another column"
            )
        return token, tag


def is_span_tag(tag: str) -> bool:
    """Tell whether it may mark a part of a span: O, B-PER."""
    return _SPAN_TAG.fullmatch(tag) is not None


def _check_span_tag(tag: str, *, where: str) -> None:
    if not is_span_tag(tag):
        raise DataError(
            f"{where}: {tag!r} is not a tag of spans; wanted O, or a letter of IOB or BIOES, '-' "
            "and a type, such as B-PER: mend the line, or choose another column"
        )


def _drop_place(token: str, *, where: str) -> str:
    numbered = _NUMBERED.fullmatch(token)
    if numbered is None:
        raise DataError(
            f"{where}: wanted a token and its place in its word, such as 科0, got {token!r}; mend "
            "the line, or read the file as one without places"
        )
    return numbered[1]


def _show(columns: list[str]) -> str:
    return shorten(" ".join(columns))
