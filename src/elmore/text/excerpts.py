"""Cut a stream of text into excerpts that can be read independently.

Where the cuts are depends only on the bytes. No sentence is cut in two, and no character; a
document may be, unless the caller asks for whole ones.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import BinaryIO

from elmore.errors import DataError
from elmore.text import files
from elmore.text.files import Excerpt, TextForm, read_bytes
from elmore.text.language import Language
from elmore.text.sentences import split_sentences

# In a line too long for an excerpt, look for the end of a sentence in this many last bytes.
TAIL_BYTES = 1 << 16
# A longer document is probably text in which nothing marks the end of one.
MAX_DOCUMENT_BYTES = 1 << 28

_BLANK_LINE = re.compile(rb"\n\r?\n")
_NEW_DOCUMENT = re.compile(rb"\n(?=#\s*newdoc\b)")


class DocumentCuts(Enum):
    """Whether excerpts end where documents end."""

    IGNORED = auto()
    PREFERRED = auto()  # cut elsewhere if an excerpt would be too long
    REQUIRED = auto()


def cut_text(
    stream: BinaryIO,
    *,
    name: str,
    form: TextForm,
    max_bytes: int,
    language: Language,
    documents: DocumentCuts = DocumentCuts.IGNORED,
) -> Iterator[Excerpt]:
    """Yield the text of a stream in excerpts of at most `max_bytes`.

    Only with `DocumentCuts.REQUIRED`, an excerpt may be longer: up to the end of its document.
    """
    rest = b""
    line_number = 1
    starts_file, continues_line = True, False
    line_bytes = 0  # of the first line, with what earlier excerpts have of it
    while True:
        num_wanted = max_bytes
        while True:
            rest += _read_fully(stream, num_wanted - len(rest), name=name)
            is_end = len(rest) < num_wanted
            if is_end or documents is not DocumentCuts.REQUIRED:
                break
            if _find_document(rest, form=form):
                break
            num_wanted += max_bytes
            if num_wanted > MAX_DOCUMENT_BYTES:
                raise DataError(
                    f"{name}, line {line_number}: a document has more than "
                    f"{MAX_DOCUMENT_BYTES:,} bytes; mark where documents end, or do not use "
                    "documents"
                )
        if is_end:
            cut = len(rest)
        elif documents is DocumentCuts.IGNORED:
            cut = find_cut(rest, form=form, language=language)
        else:
            cut = _find_document(rest, form=form) or find_cut(rest, form=form, language=language)
        data, rest = rest[:cut], rest[cut:]
        line_bytes += data.find(b"\n") if b"\n" in data else len(data)
        if form in files.WHOLE_LINES and line_bytes > files.MAX_LINE_BYTES:
            raise files.make_long_line_error(name, line_number)
        if data:
            yield Excerpt(
                data=data,
                name=name,
                first_line=line_number,
                starts_file=starts_file,
                continues_line=continues_line,
            )
        if is_end:
            return
        line_number += data.count(b"\n")
        starts_file, continues_line = False, not data.endswith(b"\n")
        line_bytes = line_bytes if continues_line else 0


def _read_fully(stream: BinaryIO, num_bytes: int, *, name: str) -> bytes:
    """Read `num_bytes`, in several reads if needed: a pipe may return less than requested."""
    parts = []
    while num_bytes and (part := read_bytes(stream, num_bytes, name=name)):
        parts.append(part)
        num_bytes -= len(part)
    return b"".join(parts)


def find_cut(data: bytes, *, form: TextForm, language: Language) -> int:
    """Return where to cut `data`: at the last position that is not inside a sentence."""
    if form in files.FASTA_FORMS and (record := data.rfind(b"\n>") + 1):
        return record
    if form in (TextForm.WRAPPED, TextForm.CONLLU):
        blank_line = _find_last(_BLANK_LINE, data)
        if blank_line:
            return blank_line
    line_end = data.rfind(b"\n") + 1
    if line_end and form is not TextForm.WRAPPED:
        return line_end
    if form is TextForm.TOKENIZED:
        separator = b"\t" if b"\t" in data else b" "
        return data.rfind(separator) + 1 or _find_character(data)
    return _find_sentence(data, language=language)


def _find_document(data: bytes, *, form: TextForm) -> int:
    """Return where the last document of `data` starts, or 0 if there is only one."""
    if form in files.FASTA_FORMS:
        return data.rfind(b"\n>") + 1
    return _find_last(_NEW_DOCUMENT if form is TextForm.CONLLU else _BLANK_LINE, data)


def _find_last(pattern: re.Pattern[bytes], data: bytes) -> int:
    """Return the end of the last match, or 0; the tail of `data` is searched first."""
    for start in (max(len(data) - TAIL_BYTES, 0), 0):
        ends = [match.end() for match in pattern.finditer(data, start)]
        if ends:
            return ends[-1]
    return 0


def _find_sentence(data: bytes, *, language: Language) -> int:
    """Return the start of the last sentence of a very long line, or of its last token."""
    # Invalid bytes must survive the round trip, so that lengths stay the same.
    text = data[-TAIL_BYTES:].decode("utf-8", "surrogateescape").replace("\n", " ")
    stripped = text.rstrip()
    sentences = split_sentences(text, language=language)
    if len(sentences) > 1:
        start = len(stripped) - len(sentences[-1])
    else:
        tokens = stripped.rsplit(maxsplit=1)
        start = len(stripped) - len(tokens[1]) if len(tokens) > 1 else 0
    if start == 0:
        return _find_character(data)
    return len(data) - len(text[start:].encode("utf-8", "surrogateescape"))


def _find_character(data: bytes) -> int:
    """Return the start of the last character, so that none is cut in two."""
    for position in range(len(data) - 1, max(len(data) - 5, 0), -1):
        if data[position] & 0xC0 != 0x80:
            return position
    return len(data)
