"""Split the lines of a text into tokenized sentences that know the line they start on."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from elmore.errors import DataError
from elmore.text.language import Language
from elmore.text.sentences import split_sentences
from elmore.text.tokens import split_tokens

# Text without a sentence end is buffered up to this size, then cut.
MAX_PENDING_CHARS = 2**20

_WORD_ID = re.compile(r"[0-9]+")
_SKIPPED_ID = re.compile(r"[0-9]+[-.][0-9]+")
_NEW_DOCUMENT = re.compile(r"#\s*newdoc\b")


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A line, or a part of a very long line."""

    text: str
    line_number: int
    ends_line: bool


class NumberedSentence(NamedTuple):
    """A tokenized sentence of a text file."""

    tokens: list[str]
    line: int  # of the file, from 1: where the sentence starts
    tags: list[str] | None = None  # parts of speech, one per token, in CoNLL-U; "" for "_"
    key: str | None = None  # the id of a record, in files of records
    source: str | None = None  # the file, where several files are read as one text


def join_lines(pieces: Iterator[Piece], *, joint: str) -> Iterator[Piece]:
    """Join the lines between blank lines into one line."""
    is_blank = True
    for piece in pieces:
        is_blank = is_blank and not piece.text.strip()
        if not piece.ends_line:
            yield piece
            continue
        if is_blank:
            yield replace(piece, text="\n")  # ends the paragraph
            yield replace(piece, text="\n")  # is blank, so it ends the document
        else:
            yield replace(piece, text=drop_line_end(piece.text) + joint, ends_line=False)
        is_blank = True


def split_lines(pieces: Iterator[Piece], *, language: Language) -> Iterator[NumberedSentence]:
    """Yield the sentences of each line, and an empty one for a blank line."""
    buffer = _Buffer()
    is_blank = True
    for piece in pieces:
        buffer.add(piece)
        if not piece.ends_line and len(buffer) <= MAX_PENDING_CHARS:
            continue
        text = buffer.text()
        sentences, rest = split_sentences(text, language=language), ""
        if not piece.ends_line:
            rest = _take_rest(sentences, text=text)
        yield from buffer.number(sentences, language=language)
        is_blank = is_blank and not sentences and not rest
        if piece.ends_line:
            if is_blank:
                yield NumberedSentence([], piece.line_number)
            is_blank = True
        buffer.keep_end(len(rest))
    sentences = split_sentences(buffer.text(), language=language)
    yield from buffer.number(sentences, language=language)


class _Buffer:
    """Pieces that wait for the end of a line or paragraph."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._starts: list[int] = []  # of the parts in the joined text
        self._line_numbers: list[int] = []
        self._num_chars = 0

    def __len__(self) -> int:
        return self._num_chars

    def add(self, piece: Piece) -> None:
        self._parts.append(piece.text)
        self._starts.append(self._num_chars)
        self._line_numbers.append(piece.line_number)
        self._num_chars += len(piece.text)

    def text(self) -> str:
        return "".join(self._parts)

    def number(self, sentences: list[str], *, language: Language) -> Iterator[NumberedSentence]:
        """Split consecutive sentences of the text into tokens, and find their lines."""
        if len(self._starts) <= 1:  # true of most lines
            for sentence in sentences:
                yield NumberedSentence(
                    split_tokens(sentence, language=language), self._line_numbers[0]
                )
            return
        text, end = self.text(), 0
        for sentence in sentences:
            start = text.index(sentence, end)  # only whitespace is between two sentences
            end = start + len(sentence)
            line = self._line_numbers[bisect_right(self._starts, start) - 1]
            yield NumberedSentence(split_tokens(sentence, language=language), line)

    def keep_end(self, num_chars: int) -> None:
        """Drop all but the last `num_chars`."""
        if not num_chars:
            self._parts, self._starts, self._line_numbers, self._num_chars = [], [], [], 0
            return
        dropped = self._num_chars - num_chars
        first = bisect_right(self._starts, dropped) - 1
        self._parts = [self.text()[dropped:]]
        self._line_numbers = self._line_numbers[first:]
        self._starts = [0, *(start - dropped for start in self._starts[first + 1 :])]
        self._num_chars = num_chars


def _take_rest(sentences: list[str], *, text: str) -> str:
    """Remove and return the unfinished last sentence; if too long, only its last token."""
    if not sentences:
        return ""
    rest = text[len(text.rstrip()) - len(sentences.pop()) :]
    if len(rest) <= MAX_PENDING_CHARS // 2:
        return rest
    token = "" if rest[-1].isspace() else rest.split()[-1]
    if len(token) > MAX_PENDING_CHARS // 2:
        token = ""
    sentences.append(rest[: len(rest) - len(token)])
    return token


def split_tokenized(line: str) -> list[str]:
    """Return the tokens of a tokenized line, split at tabs if it has any, else at spaces."""
    line = drop_line_end(line)
    return [token for token in line.split("\t" if "\t" in line else " ") if token]


def read_conllu(pieces: Iterator[Piece], *, name: str) -> Iterator[NumberedSentence]:
    """Yield each sentence's words and their tags, and an empty sentence where a document starts."""
    words: list[tuple[str, str]] = []
    first_line = 0
    for piece in pieces:
        line = drop_line_end(piece.text)
        is_new_document = _NEW_DOCUMENT.match(line) is not None
        if line.strip() and not is_new_document:
            first_line = first_line if words else piece.line_number
            words += _read_word(line, where=f"{name}, line {piece.line_number}")
            continue
        if words:
            yield _join_words(words, line=first_line)
            words = []
        if is_new_document:
            yield NumberedSentence([], piece.line_number)
    if words:
        yield _join_words(words, line=first_line)


def _join_words(words: list[tuple[str, str]], *, line: int) -> NumberedSentence:
    return NumberedSentence([word for word, _ in words], line, [tag for _, tag in words])


def _read_word(line: str, *, where: str) -> list[tuple[str, str]]:
    """Return the word of a CoNLL-U line and its tag in a list, or an empty list if there is none.

    The tag is "" if there is none.
    """
    if line.startswith("#"):
        return []
    columns = line.split("\t", maxsplit=4)
    if len(columns) >= 2:
        if _SKIPPED_ID.fullmatch(columns[0]):
            return []
        if _WORD_ID.fullmatch(columns[0]) and columns[1]:
            tag = columns[3] if len(columns) > 3 and columns[3] != "_" else ""
            return [(columns[1], tag)]
    raise DataError(
        f"{where}: expected CoNLL-U columns (a number, a tab, a word), got {line[:40]!r}; "
        "fix the line, or if the file is not CoNLL-U, choose the right form"
    )


def drop_line_end(line: str) -> str:
    """Return a line without its line break; other whitespace is kept."""
    return line[:-2] if line.endswith("\r\n") else line.removesuffix("\n")
