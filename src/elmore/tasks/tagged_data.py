"""Sentences whose tokens have tags: read from CoNLL-U or plain columns, guessed by counting."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from elmore.errors import ConfigError, DataError
from elmore.text.files import TextForm, read_sentences

# Where CoNLL-U has its tags, the word's number being column 0.
CONLLU_COLUMNS = {"upos": 3, "xpos": 4, "deprel": 7}
NUM_CONLLU_COLUMNS = 10

# CoNLL-2003 and its kin put such a line, with tags of no meaning, before every document.
DOCUMENT_START = "-DOCSTART-"

_WORD_ID = re.compile(r"[0-9]+")
_SKIPPED_ID = re.compile(r"[0-9]+[-.][0-9]+")

# What a line holds: a token and its tag, or nothing.
_Entry = tuple[str, str] | None
_LineReader = Callable[[list[str], str], _Entry]


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggedSentence:
    """A sentence and one tag a token."""

    tokens: list[str]
    tags: list[str]


def read_tagged(path: Path, *, column: str | int = "upos") -> list[TaggedSentence]:
    """Read CoNLL-U if `column` is upos, xpos or deprel; with a number, columns counted from 1.

    Plain columns are separated by tabs or else by spaces, and the token is the first of them.
    """
    read_line = _choose_reader(str(column), path)
    # A line of columns is split as a tokenized line is: by tabs if it has any, else by spaces.
    lines = read_sentences(path, form=TextForm.TOKENIZED)
    sentences: list[TaggedSentence] = []
    entries: list[tuple[str, str]] = []
    for number, columns in enumerate(chain(lines, [[]]), start=1):
        if "".join(columns).strip() and columns[0] != DOCUMENT_START:
            entry = read_line(columns, f"{path}, line {number}")
            entries += [entry] if entry is not None else []
        elif entries:
            tokens, tags = zip(*entries, strict=True)
            sentences.append(TaggedSentence(tokens=list(tokens), tags=list(tags)))
            entries = []
    if not sentences:
        raise DataError(f"{path} has no tagged sentence; give a file with one token a line")
    return sentences


def guess_by_frequency(
    train: Iterable[TaggedSentence], sentences: Iterable[TaggedSentence]
) -> list[str]:
    """Give each token of `sentences` its most frequent tag in `train`, as one list.

    A token that is not there, spelled as it is, gets the most frequent tag of all; of tags equally
    frequent, the one met first counts.
    """
    by_token: defaultdict[str, Counter[str]] = defaultdict(Counter)
    overall: Counter[str] = Counter()
    for sentence in train:
        overall.update(sentence.tags)
        for token, tag in zip(sentence.tokens, sentence.tags, strict=True):
            by_token[token][tag] += 1
    guesses = {token: tags.most_common(1)[0][0] for token, tags in by_token.items()}
    fallback = overall.most_common(1)[0][0]
    return [guesses.get(token, fallback) for sentence in sentences for token in sentence.tokens]


def _choose_reader(column: str, path: Path) -> _LineReader:
    if column in CONLLU_COLUMNS:
        return lambda columns, where: _read_conllu_line(columns, column=column, where=where)
    if not (column.isascii() and column.isdigit() and int(column) >= 2):
        raise ConfigError(
            f"column is {column!r}; choose {', '.join(CONLLU_COLUMNS)} of CoNLL-U, or for other "
            "files the number of the tag's column, from 2 (the token is column 1)"
        )
    if ".conllu" in map(str.lower, path.suffixes):
        # Its first column is a number, which would be taken for the token.
        raise ConfigError(
            f"column is {column} but {path} is CoNLL-U; choose {', '.join(CONLLU_COLUMNS)}"
        )
    return _PlainReader(number=int(column))


def _read_conllu_line(columns: list[str], *, column: str, where: str) -> _Entry:
    """Leave out comments, multiword ranges (their words follow) and empty nodes (never said)."""
    if columns[0].startswith("#") or _SKIPPED_ID.fullmatch(columns[0]):
        return None
    # Empty columns are lost in reading; counting all ten notices, where the tag's own would not.
    if len(columns) != NUM_CONLLU_COLUMNS or not _WORD_ID.fullmatch(columns[0]):
        raise DataError(
            f"{where}: wanted the {NUM_CONLLU_COLUMNS} columns of CoNLL-U, a number first, got "
            f"{len(columns)} ({_show(columns)}); mend the line, or if the file is not CoNLL-U, "
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
        # Empty columns are lost in reading, and what follows would be taken for the tag.
        if self.num_columns not in (None, len(columns)):
            raise DataError(
                f"{where}: wanted {self.num_columns} columns as in the lines before, got "
                f"{len(columns)} ({_show(columns)}); fill in what is empty"
            )
        self.num_columns = len(columns)
        return columns[0], columns[self.number - 1]


def _show(columns: list[str]) -> str:
    return repr(" ".join(columns)[:40])
