"""Stream tokenized sentences from text files of any size, in constant memory."""

import codecs
import glob
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from elmore.errors import DataError
from elmore.text.compressed_stream import FORMATS, open_compressed
from elmore.text.encodings import advise_on_encoding
from elmore.text.fasta import read_fasta
from elmore.text.language import Language
from elmore.text.line_sentences import (
    MAX_PENDING_CHARS,
    NumberedSentence,
    Piece,
    drop_line_end,
    join_lines,
    read_conllu,
    split_lines,
    split_tokenized,
)
from elmore.text.tokens import split_tokens

# The longest line that is read whole: over a million tokens. A few compressed bytes can expand to
# far longer ones.
MAX_LINE_BYTES = 2**23
MAX_TOKEN_CHARS = 2**16


class TextForm(StrEnum):
    """How sentences are stored in a file."""

    RAW = "raw"
    """Plain text; a line break ends a sentence, a blank line ends a document."""

    WRAPPED = "wrapped"
    """Plain text with lines wrapped to some width; a blank line ends a paragraph."""

    TOKENIZED = "tokenized"
    """One sentence per line; tokens are separated by tabs or, in a line without tabs, by spaces."""

    LINES = "lines"
    """One sentence per line, not yet split into tokens."""

    CONLLU = "conllu"
    """Universal Dependencies' columns, one word per line."""

    FASTA = "fasta"
    """Protein sequences: a record is a sentence, a residue is a token; U, Z, O and B become X."""

    FASTA_EXACT = "fasta-exact"
    """Like `fasta`, but U, Z, O and B are kept."""


# Forms whose lines are read whole; a very long line of the others is read in pieces.
FASTA_FORMS = (TextForm.FASTA, TextForm.FASTA_EXACT)
WHOLE_LINES = (TextForm.TOKENIZED, TextForm.LINES, TextForm.CONLLU, *FASTA_FORMS)
# Forms whose blank lines are empty sentences, so that sentence i is line i.
LINE_FORMS = (TextForm.TOKENIZED, TextForm.LINES)


SUFFIXES = {
    ".conllu": TextForm.CONLLU,
    ".conll": TextForm.CONLLU,
    ".fasta": TextForm.FASTA,
    ".fa": TextForm.FASTA,
    ".faa": TextForm.FASTA,
}


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


def guess_form(path: Path) -> TextForm:
    """Guess the form from the file's name: CoNLL-U, FASTA or plain text."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in FORMATS:
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1], TextForm.RAW) if suffixes else TextForm.RAW


def read_sentences(
    source: Path | BinaryIO,
    *,
    form: TextForm,
    language: Language = Language.EN,
    on_bytes: Callable[[int], None] | None = None,
) -> Iterator[list[str]]:
    """Yield each sentence's tokens; an empty list ends a document, or is a blank line.

    See `read_numbered_sentences`.
    """
    numbered = read_numbered_sentences(source, form=form, language=language, on_bytes=on_bytes)
    return (sentence.tokens for sentence in numbered)


def read_numbered_sentences(
    source: Path | BinaryIO,
    *,
    form: TextForm,
    language: Language = Language.EN,
    on_bytes: Callable[[int], None] | None = None,
) -> Iterator[NumberedSentence]:
    """Yield each sentence's tokens and the line it starts on.

    An empty sentence ends a document; in forms with one sentence per line, it is a blank line. The
    file is opened when the first sentence is requested and closed after the last. `on_bytes` is
    called with the current position in the file (of a compressed file: in compressed bytes).
    """
    name = find_name(source)
    form = TextForm(form)
    with open_text(source) as (file, stream):
        pieces = _read_pieces(stream, form=form, name=name)
        if on_bytes is not None and file.seekable():
            pieces = _watch(pieces, file, on_bytes)
        sentences = _split_pieces(pieces, form=form, language=language, name=name)
        yield from sentences if form in LINE_FORMS else collapse_breaks(sentences)


def read_text(
    source: Path | BinaryIO,
    *,
    form: TextForm | None = None,
    language: Language = Language.EN,
    keeps_document_ends: bool = False,
    on_bytes: Callable[[int], None] | None = None,
) -> Iterator[NumberedSentence]:
    """Yield the sentences to embed: like `read_numbered_sentences`, but with defaults.

    The form is guessed if it is not given. In forms that are not one sentence per line, an empty
    sentence only marks the end of a document, and is dropped unless `keeps_document_ends`.
    """
    if form is None:
        form = guess_form(source) if isinstance(source, Path) else TextForm.RAW
    sentences = read_numbered_sentences(source, form=form, language=language, on_bytes=on_bytes)
    if keeps_document_ends or form in LINE_FORMS:
        return sentences
    return (sentence for sentence in sentences if sentence.tokens)


def read_excerpt(
    excerpt: Excerpt,
    *,
    form: TextForm,
    language: Language = Language.EN,
    on_bad_bytes: Callable[[BadBytes], None] | None = None,
) -> Iterator[list[str]]:
    """Yield each sentence's tokens, and one or more empty lists wherever a document ends.

    See `read_numbered_excerpt`.
    """
    numbered = read_numbered_excerpt(
        excerpt, form=form, language=language, on_bad_bytes=on_bad_bytes
    )
    return (sentence.tokens for sentence in numbered)


def read_numbered_excerpt(
    excerpt: Excerpt,
    *,
    form: TextForm,
    language: Language = Language.EN,
    on_bad_bytes: Callable[[BadBytes], None] | None = None,
) -> Iterator[NumberedSentence]:
    """Yield each sentence with its line in the file, and empty ones wherever a document ends.

    Unlike for a whole file, an empty list may come first or last, because a document can span
    excerpts. With `on_bad_bytes`, bytes that are not UTF-8 are replaced with U+FFFD; without it
    they raise an error.
    """
    pieces = _read_pieces(
        io.BytesIO(excerpt.data),
        form=form,
        name=excerpt.name,
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


def find_files_in(folder: Path) -> list[Path]:
    """Return the files in a folder and its subfolders, sorted; hidden ones are not texts."""
    paths = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    if not paths:
        raise DataError(f"the folder {folder} has no files; check the path")
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
    pieces: Iterator[Piece], *, form: TextForm, language: Language, name: str
) -> Iterator[NumberedSentence]:
    """Yield the sentences, and empty ones where a document ends."""
    match form:
        case TextForm.RAW:
            return split_lines(pieces, language=language)
        case TextForm.WRAPPED:
            paragraphs = join_lines(pieces, joint="" if Language(language).is_chinese else " ")
            return split_lines(paragraphs, language=language)
        case TextForm.TOKENIZED:
            return (
                NumberedSentence(split_tokenized(piece.text), piece.line_number) for piece in pieces
            )
        case TextForm.LINES:
            return (
                NumberedSentence(split_tokens(piece.text, language=language), piece.line_number)
                for piece in pieces
            )
        case TextForm.CONLLU:
            return read_conllu(pieces, name=name)
        case TextForm.FASTA | TextForm.FASTA_EXACT:
            return read_fasta(pieces, name=name, keeps_rare=form is TextForm.FASTA_EXACT)


def _refuse_long_tokens(lines: Iterator[Piece], *, form: TextForm, name: str) -> Iterator[Piece]:
    """Yield the lines; raise an error at a token too long to be a word (the form may be wrong)."""
    for line in lines:
        if len(line.text) > MAX_TOKEN_CHARS:
            text = drop_line_end(line.text)
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
    pieces: Iterator[Piece], file: BinaryIO, on_bytes: Callable[[int], None]
) -> Iterator[Piece]:
    """Yield the pieces, and report the position in the file before each one."""
    for piece in pieces:
        on_bytes(file.tell())
        yield piece


def _read_pieces(
    stream: BinaryIO,
    *,
    form: TextForm,
    name: str,
    first_line: int = 1,
    is_start: bool = True,
    on_bad_bytes: Callable[[BadBytes], None] | None = None,
) -> Iterator[Piece]:
    """Yield the lines of a UTF-8 stream, or pieces of them if the form allows; refuse long ones."""
    is_whole = form in WHOLE_LINES
    lines = _decode_lines(
        stream,
        name=name,
        max_bytes=MAX_LINE_BYTES + 1 if is_whole else MAX_PENDING_CHARS,
        refuses_long_lines=is_whole,
        first_line=first_line,
        is_start=is_start,
        on_bad_bytes=on_bad_bytes,
    )
    # A line of plain text may hold long runs without a space, such as Chinese sentences.
    has_tokens = form in (TextForm.TOKENIZED, TextForm.CONLLU)
    return _refuse_long_tokens(lines, form=form, name=name) if has_tokens else lines


def _decode_lines(
    stream: BinaryIO,
    *,
    name: str,
    max_bytes: int,
    refuses_long_lines: bool,
    first_line: int,
    is_start: bool,
    on_bad_bytes: Callable[[BadBytes], None] | None,
) -> Iterator[Piece]:
    """Yield the lines of a UTF-8 stream, cut after `max_bytes`, or refuse lines that long."""
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
            yield Piece(text=text, line_number=line_number, ends_line=ends_line)
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


def _drop_blank_line_end(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Drop the rest of a line that started in the previous excerpt, if it is blank.

    Otherwise it would count as a blank line and end a document.
    """
    for piece in pieces:
        if piece.text.strip():
            yield piece
        break
    yield from pieces


def collapse_breaks(sentences: Iterator[NumberedSentence]) -> Iterator[NumberedSentence]:
    """Keep one empty sentence between documents, and none before the first or after the last."""
    has_sentences = False
    due_break: NumberedSentence | None = None
    for sentence in sentences:
        if sentence.tokens:
            if due_break is not None:
                yield due_break
            yield sentence
            has_sentences, due_break = True, None
        elif has_sentences:
            due_break = sentence
