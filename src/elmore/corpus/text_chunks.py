"""Cut text files into chunks of bytes that can be read independently.

Where the cuts are depends only on the bytes, so the shards are the same for any number of
processes. A chunk ends where a sentence ends; a document may continue in the next chunk. Small
files share a chunk, so that not every file becomes a shard.
"""

import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import TextIOBase
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

from elmore.errors import ConfigError
from elmore.text import files
from elmore.text.files import Excerpt, TextForm, find_name, guess_form, open_text, read_bytes
from elmore.text.language import Language
from elmore.text.sentences import split_sentences

# In a line too long for a chunk, look for the end of a sentence in this many last bytes.
TAIL_BYTES = 1 << 16

_BLANK_LINE = re.compile(rb"\n\r?\n")

# What a caller may give as a text.
AnySource = str | os.PathLike[str] | BinaryIO


@dataclass(frozen=True, kw_only=True)
class Source:
    """A text to read, and whether it is held out."""

    source: Path | BinaryIO
    is_heldout: bool
    form: TextForm

    @property
    def name(self) -> str:
        """The name used in messages."""
        return find_name(self.source)


@dataclass(frozen=True, kw_only=True)
class SourceExcerpt:
    """An excerpt of a source."""

    source_number: int
    form: TextForm
    excerpt: Excerpt
    position: int  # how far the file has been read, in bytes of the (perhaps compressed) file


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """The text of one shard: part of a large source, or several small ones."""

    number: int
    is_heldout: bool
    excerpts: tuple[SourceExcerpt, ...]

    @cached_property
    def num_bytes(self) -> int:
        """Bytes of text."""
        return sum(len(part.excerpt.data) for part in self.excerpts)

    @cached_property
    def checksum(self) -> int:
        """CRC-32 of the text and of the boundaries between sources."""
        checksum = 0
        for part in self.excerpts:
            edge = f"{part.source_number} {len(part.excerpt.data)}\n"
            checksum = zlib.crc32(part.excerpt.data, zlib.crc32(edge.encode(), checksum))
        return checksum


def make_sources(
    train: AnySource | Iterable[AnySource],
    heldout: AnySource | Iterable[AnySource],
    *,
    form: TextForm | None,
) -> list[Source]:
    """Return the texts to read, in order, with their forms; a single text need not be in a list.

    A path may be a pattern such as `texts/*.txt`.
    """
    return [
        Source(
            source=source,
            is_heldout=is_heldout,
            form=_guess(source) if form is None else TextForm(form),
        )
        for is_heldout, sources in ((False, train), (True, heldout))
        for source in _list_sources(sources)
    ]


def _list_sources(sources: Any) -> list[Path | BinaryIO]:
    is_one = isinstance(sources, str | os.PathLike) or hasattr(sources, "read")
    found: list[Path | BinaryIO] = []
    for source in [sources] if is_one or not isinstance(sources, Iterable) else sources:
        if isinstance(source, str | os.PathLike):
            found += files.find_files([os.fsdecode(source)])
        elif hasattr(source, "read") and not isinstance(source, TextIOBase):
            found.append(source)
        else:
            raise ConfigError(
                f"expected a path or a file opened in binary mode, got {source!r:.80}; give the "
                "path instead"
            )
    return found


def _guess(source: Path | BinaryIO) -> TextForm:
    return guess_form(source) if isinstance(source, Path) else TextForm.RAW


def read_chunks(
    sources: Sequence[Source], *, chunk_bytes: int, language: Language
) -> Iterator[Chunk]:
    """Yield the text of all sources in chunks."""
    numbers = count()
    waiting: list[SourceExcerpt] = []
    num_bytes, is_heldout = 0, False

    def pack() -> Chunk:
        return Chunk(number=next(numbers), is_heldout=is_heldout, excerpts=tuple(waiting))

    for part in _read_excerpts(sources, chunk_bytes=chunk_bytes, language=language):
        is_other_part = sources[part.source_number].is_heldout != is_heldout
        if waiting and (num_bytes + len(part.excerpt.data) > chunk_bytes or is_other_part):
            yield pack()
            waiting, num_bytes = [], 0
        waiting.append(part)
        num_bytes += len(part.excerpt.data)
        is_heldout = sources[part.source_number].is_heldout
    if waiting:
        yield pack()


def _read_excerpts(
    sources: Sequence[Source], *, chunk_bytes: int, language: Language
) -> Iterator[SourceExcerpt]:
    for source_number, source in enumerate(sources):
        with open_text(source.source) as (file, stream):
            for excerpt in _cut_stream(stream, source, chunk_bytes=chunk_bytes, language=language):
                yield SourceExcerpt(
                    source_number=source_number,
                    form=source.form,
                    excerpt=excerpt,
                    position=file.tell() if file.seekable() else 0,
                )


def _cut_stream(
    stream: BinaryIO, source: Source, *, chunk_bytes: int, language: Language
) -> Iterator[Excerpt]:
    name = source.name
    rest = b""
    line_number = 1
    starts_file, continues_line = True, False
    line_bytes = 0  # of the first line, with what earlier excerpts have of it
    while True:
        data = rest + _read_fully(stream, chunk_bytes - len(rest), name=name)
        is_end = len(data) < chunk_bytes
        cut = len(data) if is_end else find_cut(data, form=source.form, language=language)
        data, rest = data[:cut], data[cut:]
        line_bytes += data.find(b"\n") if b"\n" in data else len(data)
        if source.form in files.WHOLE_LINES and line_bytes > files.MAX_LINE_BYTES:
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
