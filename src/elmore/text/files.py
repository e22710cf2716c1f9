"""Stream tokenized sentences from text files of any size, in constant memory."""

import codecs
import glob
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from elmore.errors import DataError
from elmore.text.compressed_stream import FORMATS, open_compressed
from elmore.text.encodings import advise_on_encoding
from elmore.text.language import Language
from elmore.text.sentences import split_sentences
from elmore.text.tokens import split_tokens

# Text without a sentence end is buffered up to this size, then cut.
MAX_PENDING_CHARS = 2**20
# The longest line that is read whole: over a million tokens. A few compressed bytes can expand to
# far longer ones.
MAX_LINE_BYTES = 2**23
MAX_TOKEN_CHARS = 2**16

_WORD_ID = re.compile(r"[0-9]+")
_SKIPPED_ID = re.compile(r"[0-9]+[-.][0-9]+")
_NEW_DOCUMENT = re.compile(r"#\s*newdoc\b")


class TextForm(StrEnum):
    """How sentences are stored in a file."""

    RAW = "raw"
    """Plain text; a line break ends a sentence, a blank line ends a document."""

    WRAPPED = "wrapped"
    """Plain text with lines wrapped to some width; a blank line ends a paragraph."""

    TOKENIZED = "tokenized"
    """One sentence per line; tokens are separated by tabs if there are any, else by spaces."""

    CONLLU = "conllu"
    """Universal Dependencies' columns, one word per line."""


# Forms whose very long lines are read in pieces.
_CUT_LINES = (TextForm.RAW, TextForm.WRAPPED)


@dataclass(frozen=True, kw_only=True, slots=True)
class BadBytes:
    """Bytes that are not UTF-8, in one line or in one piece of a very long line."""

    line_number: int
    byte: int  # the first bad byte
    count: int  # how many U+FFFD replace the bad bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Excerpt:
    """Part of a file: whole lines, except for a line too long to hold in memory."""

    data: bytes
    name: str  # of the file, for error messages
    first_line: int = 1
    starts_file: bool = True
    continues_line: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class _Piece:
    """A line, or a part of a very long line."""

    text: str
    line_number: int
    ends_line: bool


def guess_form(path: Path) -> TextForm:
    """Guess the form from the file's name: CoNLL-U or plain text."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in FORMATS:
        suffixes.pop()
    return TextForm.CONLLU if suffixes[-1:] in ([".conllu"], [".conll"]) else TextForm.RAW


def read_sentences(
    source: Path | BinaryIO,
    *,
    form: TextForm,
    language: Language = Language.EN,
    on_bytes: Callable[[int], None] | None = None,
) -> Iterator[list[str]]:
    """Yield each sentence's tokens; an empty list ends a document (or is a blank tokenized line).

    The file is opened when the first sentence is requested and closed after the last. `on_bytes`
    is called with the current position in the file (of a compressed file: in compressed bytes).
    """
    name = find_name(source)
    form = TextForm(form)
    with open_text(source) as (file, stream):
        if form in _CUT_LINES:
            pieces = _read_pieces(stream, name=name, max_bytes=MAX_PENDING_CHARS)
        else:
            lines = _read_pieces(
                stream, name=name, max_bytes=MAX_LINE_BYTES + 1, refuses_long_lines=True
            )
            pieces = _refuse_long_tokens(lines, form=form, name=name)
        if on_bytes is not None and file.seekable():
            pieces = _watch(pieces, file, on_bytes)
        sentences = _split_pieces(pieces, form=form, language=language, name=name)
        yield from sentences if form is TextForm.TOKENIZED else _collapse_breaks(sentences)


def read_excerpt(
    excerpt: Excerpt,
    *,
    form: TextForm,
    language: Language = Language.EN,
    on_bad_bytes: Callable[[BadBytes], None] | None = None,
) -> Iterator[list[str]]:
    """Yield each sentence's tokens, and one or more empty lists wherever a document ends.

    Unlike for a whole file, an empty list may come first or last, because a document can span
    excerpts. With `on_bad_bytes`, bytes that are not UTF-8 are replaced with U+FFFD; without it
    they raise an error.
    """
    pieces = _read_pieces(
        io.BytesIO(excerpt.data),
        name=excerpt.name,
        max_bytes=MAX_PENDING_CHARS if form in _CUT_LINES else -1,
        first_line=excerpt.first_line,
        is_start=excerpt.starts_file,
        on_bad_bytes=on_bad_bytes,
    )
    if excerpt.continues_line:
        pieces = _drop_blank_line_end(pieces)
    return _split_pieces(pieces, form=form, language=language, name=excerpt.name)


def find_files(patterns: Iterable[str]) -> list[Path]:
    """Return the files that match paths and patterns such as `texts/*.gz`, sorted per pattern."""
    paths: list[Path] = []
    for pattern in patterns:
        is_path = glob.escape(pattern) == pattern or Path(pattern).exists()
        found = [pattern] if is_path else sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 (Path.glob takes no absolute pattern)
        files = [Path(name) for name in found if is_path or Path(name).is_file()]
        if not files:
            raise DataError(f"no file matches {pattern!r}; check the pattern")
        paths += files
    return paths


def find_name(source: Path | BinaryIO) -> str:
    """Return the name of `source` for error messages."""
    if isinstance(source, Path):
        return str(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) and name != "<stdin>" else "standard input"


@contextmanager
def open_text(source: Path | BinaryIO) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open a file; yield it and a stream of its text, decompressed if its suffix says so."""
    with _open(source, name=find_name(source)) as file:
        suffix = source.suffix.lower() if isinstance(source, Path) else ""
        yield file, open_compressed(file, suffix=suffix) if suffix in FORMATS else file


def _open(source: Path | BinaryIO, *, name: str) -> AbstractContextManager[BinaryIO]:
    """Open a file; leave a stream as it is."""
    if not isinstance(source, Path):
        return nullcontext(source)
    try:
        return source.open("rb")
    except FileNotFoundError:
        raise DataError(f"there is no file {name}; check its path") from None
    except IsADirectoryError:
        raise DataError(f"{name} is a folder; give a file in it") from None
    except PermissionError:
        raise DataError(f"no permission to read {name}; change its permissions") from None
    except (OSError, ValueError) as error:
        raise DataError(f"cannot open {name} ({error}); check its path") from None


def _split_pieces(
    pieces: Iterator[_Piece], *, form: TextForm, language: Language, name: str
) -> Iterator[list[str]]:
    """Yield each sentence's tokens, and empty lists where a document ends."""
    match form:
        case TextForm.RAW:
            return _split_lines(pieces, language=language)
        case TextForm.WRAPPED:
            paragraphs = _join_lines(pieces, joint="" if Language(language).is_chinese else " ")
            return _split_lines(paragraphs, language=language)
        case TextForm.TOKENIZED:
            return (split_tokenized(piece.text) for piece in pieces)
        case TextForm.CONLLU:
            return _read_conllu(pieces, name=name)


def _refuse_long_tokens(lines: Iterator[_Piece], *, form: TextForm, name: str) -> Iterator[_Piece]:
    """Yield the lines; raise an error at a token too long to be a word (the form may be wrong)."""
    for line in lines:
        if len(line.text) > MAX_TOKEN_CHARS:
            text = _drop_line_end(line.text)
            is_tokenized = form is TextForm.TOKENIZED
            tokens = split_tokenized(text) if is_tokenized else text.split("\t")[1:2]
            num_chars = max(map(len, tokens), default=0)
            if num_chars > MAX_TOKEN_CHARS:
                raise DataError(
                    f"{name}, line {line.line_number}: a token has {num_chars:,} characters, the "
                    f"limit is {MAX_TOKEN_CHARS:,}; fix the line, or if the text is not {form}, "
                    "choose the right form"
                )
        yield line


def make_long_line_error(name: str, line_number: int) -> DataError:
    """Return the error for a line that is too long to read whole."""
    return DataError(
        f"{name}, line {line_number}: the line is over the limit of {MAX_LINE_BYTES:,} bytes; "
        "break it up, or check that this is the right file and form"
    )


def _watch(
    pieces: Iterator[_Piece], file: BinaryIO, on_bytes: Callable[[int], None]
) -> Iterator[_Piece]:
    """Yield the pieces, and report the position in the file before each one."""
    for piece in pieces:
        on_bytes(file.tell())
        yield piece


def _read_pieces(
    stream: BinaryIO,
    *,
    name: str,
    max_bytes: int = -1,
    first_line: int = 1,
    is_start: bool = True,
    refuses_long_lines: bool = False,
    on_bad_bytes: Callable[[BadBytes], None] | None = None,
) -> Iterator[_Piece]:
    """Yield the lines of a UTF-8 stream, each whole or in pieces of at most `max_bytes`."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line_number = first_line
    while True:
        chunk = _read_line(stream, name=name, max_bytes=max_bytes)
        ends_line = chunk.endswith(b"\n")
        is_final = ends_line or len(chunk) != max_bytes  # else a character may be cut
        if refuses_long_lines and not is_final:
            raise make_long_line_error(name, line_number)
        try:
            text = decoder.decode(chunk, final=is_final)
        except UnicodeDecodeError as error:
            bad_byte = error.object[error.start]
            if on_bad_bytes is None:
                raise DataError(
                    f"{name}, line {line_number}: byte 0x{bad_byte:02x} is not UTF-8; "
                    f"{advise_on_encoding(chunk)}"
                ) from None
            text, num_used = codecs.utf_8_decode(error.object, "replace", is_final)
            decoder.setstate((error.object[num_used:], 0))
            count = text.count("\ufffd") - error.object.count("\ufffd".encode())
            on_bad_bytes(BadBytes(line_number=line_number, byte=bad_byte, count=count))
        if is_start and text:
            text = text.removeprefix("\ufeff")
            is_start = False
        if text:  # a file with only a byte order mark has no lines
            yield _Piece(text=text, line_number=line_number, ends_line=ends_line)
        if not chunk:
            return
        line_number += ends_line


def read_bytes(stream: BinaryIO, num_bytes: int, *, name: str) -> bytes:
    """Return the next `num_bytes` of a stream; fewer only at its end."""
    return _explain_damage(stream.read, num_bytes, name=name)


def _read_line(stream: BinaryIO, *, name: str, max_bytes: int) -> bytes:
    """Return the next line, or its next `max_bytes`; b"" at the end."""
    return _explain_damage(stream.readline, max_bytes, name=name)


def _explain_damage(read: Callable[[int], bytes], num_bytes: int, *, name: str) -> bytes:
    try:
        return read(num_bytes)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataError(
            f"cannot read {name} ({error}); if it is compressed, it is damaged, truncated or has "
            "the wrong suffix: copy it again"
        ) from None


def _drop_blank_line_end(pieces: Iterator[_Piece]) -> Iterator[_Piece]:
    """Drop the rest of a line that started in the previous excerpt, if it is blank.

    Otherwise it would count as a blank line and end a document.
    """
    for piece in pieces:
        if piece.text.strip():
            yield piece
        break
    yield from pieces


def _join_lines(pieces: Iterator[_Piece], *, joint: str) -> Iterator[_Piece]:
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
            yield replace(piece, text=_drop_line_end(piece.text) + joint, ends_line=False)
        is_blank = True


def _split_lines(pieces: Iterator[_Piece], *, language: Language) -> Iterator[list[str]]:
    """Yield the sentences of each line, and an empty list for a blank line."""
    parts: list[str] = []
    num_chars = 0
    is_blank = True
    for piece in pieces:
        parts.append(piece.text)
        num_chars += len(piece.text)
        if not piece.ends_line and num_chars <= MAX_PENDING_CHARS:
            continue
        sentences, rest = split_sentences("".join(parts), language=language), ""
        if not piece.ends_line:
            rest = _take_rest(sentences, text="".join(parts))
        for sentence in sentences:
            yield split_tokens(sentence, language=language)
        is_blank = is_blank and not sentences and not rest
        if piece.ends_line:
            if is_blank:
                yield []
            is_blank = True
        parts, num_chars = [rest], len(rest)
    for sentence in split_sentences("".join(parts), language=language):
        yield split_tokens(sentence, language=language)


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


def _collapse_breaks(sentences: Iterator[list[str]]) -> Iterator[list[str]]:
    """Keep one empty list between documents, and none before the first or after the last."""
    has_sentences = False
    is_break_due = False
    for sentence in sentences:
        if sentence:
            if is_break_due:
                yield []
            yield sentence
            has_sentences = True
        is_break_due = has_sentences and not sentence


def split_tokenized(line: str) -> list[str]:
    """Return the tokens of a tokenized line, split at tabs if it has any, else at spaces."""
    line = _drop_line_end(line)
    return [token for token in line.split("\t" if "\t" in line else " ") if token]


def _read_conllu(pieces: Iterator[_Piece], *, name: str) -> Iterator[list[str]]:
    """Yield each sentence's words, and an empty list where a document starts."""
    words: list[str] = []
    for piece in pieces:
        line = _drop_line_end(piece.text)
        is_new_document = _NEW_DOCUMENT.match(line) is not None
        if line.strip() and not is_new_document:
            words += _read_word(line, where=f"{name}, line {piece.line_number}")
            continue
        if words:
            yield words
            words = []
        if is_new_document:
            yield []
    if words:
        yield words


def _read_word(line: str, *, where: str) -> list[str]:
    """Return the word of a CoNLL-U line in a list, or an empty list if there is none."""
    if line.startswith("#"):
        return []
    columns = line.split("\t", maxsplit=2)
    if len(columns) >= 2:
        if _SKIPPED_ID.fullmatch(columns[0]):
            return []
        if _WORD_ID.fullmatch(columns[0]) and columns[1]:
            return [columns[1]]
    raise DataError(
        f"{where}: expected CoNLL-U columns (a number, a tab, a word), got {line[:40]!r}; "
        "fix the line, or if the file is not CoNLL-U, choose the right form"
    )


def _drop_line_end(line: str) -> str:
    """Return a line without its line break; other whitespace is kept."""
    return line[:-2] if line.endswith("\r\n") else line.removesuffix("\n")
