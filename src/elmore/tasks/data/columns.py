"""Sentences with one tag per token: CoNLL-U, and columns as in CoNLL-2003 or Weibo NER."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from elmore.errors import ConfigError, DataError
from elmore.tasks.data.lines import has_suffix, quote, read_lines, refuse_none, split_columns

# The columns of tags in CoNLL-U, counted from 0.
CONLLU_COLUMNS = {"upos": 3, "xpos": 4, "deprel": 7}
NUM_CONLLU_COLUMNS = 10

# CoNLL-2003 and similar data have such a line, with meaningless tags, before every document.
DOCUMENT_START = "-DOCSTART-"

_WORD_ID = re.compile(r"[0-9]+")
_SKIPPED_ID = re.compile(r"[0-9]+[-.][0-9]+")

# IOB, BIOES, BILOU and BMES, which can be recognized but not read.
_SPAN_TAG = re.compile(r"O|[BIESLUM]-.+")
_UNREADABLE = "M"
# The character itself may be a digit: "011" is a 0, the twelfth character of its word.
_NUMBERED = re.compile(r"(.[^0-9]*)[0-9]+", flags=re.DOTALL)

_CHARACTER_AND_POSITION = re.compile(r".[0-9]{1,2}")
_ROWS_LOOKED_AT = 50

# The content of a line: a token and its tag, or nothing.
_Entry = tuple[str, str] | None
_LineReader = Callable[[list[str], str], _Entry]


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggedSentence:
    """A sentence with one tag per token."""

    tokens: list[str]
    tags: list[str]
    path: str = field(default="", compare=False)
    lines: tuple[int, ...] = field(default=(), compare=False)
    """The lines of the tokens, from 1; empty if the sentence is not from a file."""

    def name_position(self, token: int) -> str:
        """Return the file and line of a token, for messages."""
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
    """Read CoNLL-U if `column` is upos, xpos or deprel, plain columns if it is a number from 2.

    Plain columns are separated by tabs, or by spaces if there are no tabs; the first is the token.
    With `has_spans`, tags must be span tags such as O and B-PER. With `is_numbered`, each token is
    followed by its position in its word, as in Weibo NER, which is removed.
    """
    read_line = _choose_reader(str(column), path)
    is_conllu = str(column) in CONLLU_COLUMNS
    sentences = _read(
        path, read_line, is_conllu=is_conllu, has_spans=has_spans, is_numbered=is_numbered
    )
    complaint = f"{path} has no tagged sentences; give a file with one token per line"
    return refuse_none(sentences, complaint=complaint)


def read_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and columns of each line, without blank lines and document starts."""
    for number, columns in _split_lines(path):
        if columns:
            yield number, columns


def looks_numbered(path: Path) -> bool:
    """Return whether tokens are characters with their positions in words, as in Weibo NER."""
    is_chinese = False
    for _, (token, *_) in islice(read_rows(path), _ROWS_LOOKED_AT):
        if not _CHARACTER_AND_POSITION.fullmatch(token):
            return False
        is_chinese = is_chinese or is_han(token[0])
    return is_chinese


def is_han(character: str) -> bool:
    """Return whether a character is a Chinese one, or Chinese or Japanese punctuation."""
    return "\u2e80" <= character <= "\u9fff" or "\U00020000" <= character <= "\U0003ffff"


def _split_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and columns of each line; no columns mean the end of a sentence."""
    for number, line in read_lines(path):
        columns = split_columns(line) if line.strip() else []
        yield number, [] if columns[:1] == [DOCUMENT_START] else columns


def _read(
    path: Path, read_line: _LineReader, *, is_conllu: bool, has_spans: bool, is_numbered: bool
) -> Iterator[TaggedSentence]:
    entries: list[tuple[int, str, str]] = []
    for number, columns in chain(_split_lines(path), [(0, [])]):
        if columns:
            where = f"{path}, line {number}"
            entry = read_line(columns, where)
            if entries and is_conllu and columns[0] == "1":
                raise DataError(
                    f"{where}: a word has the number 1 but is not the first of its sentence; put a "
                    "blank line before it"
                )
            if entry is not None:
                token, tag = entry
                if has_spans:
                    _check_span_tag(tag, where=where)
                token = _drop_position(token, where=where) if is_numbered else token
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
            f"column is {column!r}; choose {', '.join(CONLLU_COLUMNS)} for CoNLL-U, or for other "
            "files the number of the tag's column, from 2 (column 1 is the token)"
        )
    if has_suffix(path, ".conllu"):
        # Its first column is a number, which would be mistaken for the token.
        raise ConfigError(
            f"column is {column} but {path} is CoNLL-U; choose {', '.join(CONLLU_COLUMNS)}"
        )
    return _PlainReader(number=int(column))


def _read_conllu_line(columns: list[str], *, column: str, where: str) -> _Entry:
    """Skip comments, multiword ranges (their words follow) and empty nodes (not in the text)."""
    if columns[0].startswith("#") or _SKIPPED_ID.fullmatch(columns[0]):
        return None
    num_filled = sum(map(bool, columns))  # CoNLL-U has no empty columns: it writes _
    is_word = len(columns) == num_filled == NUM_CONLLU_COLUMNS and _WORD_ID.fullmatch(columns[0])
    if not is_word:
        raise DataError(
            f"{where}: expected the {NUM_CONLLU_COLUMNS} columns of CoNLL-U, a number first, got "
            f"{num_filled} ({_show(columns)}); fix the line, or if the file is not CoNLL-U, "
            "give the number of the tag's column"
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
    """Reads lines with a token and other columns, the same number in every line."""

    number: int  # of the tag's column, from 1
    num_columns: int | None = None

    def __call__(self, columns: list[str], where: str) -> _Entry:
        # There are no comments: '#' is a token like any other.
        if len(columns) < self.number:
            raise DataError(
                f"{where}: expected a token and its tag in column {self.number}, got "
                f"{len(columns)} column{'s' * (len(columns) != 1)} ({_show(columns)}); fix the "
                "line, or choose another column"
            )
        # With spaces as separators, an empty column is lost and the tag may be in the wrong column.
        if self.num_columns not in (None, len(columns)):
            raise DataError(
                f"{where}: expected {self.num_columns} columns as in the lines before, got "
                f"{len(columns)} ({_show(columns)}); fill in empty columns"
            )
        self.num_columns = len(columns)
        token, tag = columns[0], columns[self.number - 1]
        if not token.strip() or not tag.strip():
            raise DataError(
                f"{where}: expected a token in column 1 and its tag in column {self.number}, got "
                f"{token!r} and {tag!r}; fix the line, or choose another column"
            )
        return token, tag


def is_span_tag(tag: str) -> bool:
    """Return whether a tag is a span tag, such as O or B-PER."""
    return _SPAN_TAG.fullmatch(tag) is not None


def _check_span_tag(tag: str, *, where: str) -> None:
    if not is_span_tag(tag) or tag.startswith(_UNREADABLE):
        raise DataError(
            f"{where}: expected a span tag (O, or a letter of IOB, BIOES or BILOU, '-' and a type, "
            f"such as B-PER), got {tag!r}; fix the line, or choose another column"
        )


def _drop_position(token: str, *, where: str) -> str:
    numbered = _NUMBERED.fullmatch(token)
    if numbered is None:
        raise DataError(
            f"{where}: expected a token and its position in its word, such as 科0, got {token!r}; "
            "fix the line, or read the file as one without positions"
        )
    return numbered[1]


def _show(columns: list[str]) -> str:
    return quote(" ".join(columns))
