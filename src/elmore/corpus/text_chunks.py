"""Cut text files into chunks of bytes that can be read independently.

Where the cuts are depends only on the bytes, so the shards are the same for any number of
processes. A chunk ends where a sentence ends; a document may continue in the next chunk. Small
files share a chunk, so that not every file becomes a shard.
"""

import os
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
from elmore.text.excerpts import cut_text
from elmore.text.files import Excerpt, TextForm, find_name, guess_form, open_text
from elmore.text.language import Language

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
            excerpts = cut_text(
                stream,
                name=source.name,
                form=source.form,
                max_bytes=chunk_bytes,
                language=language,
            )
            for excerpt in excerpts:
                yield SourceExcerpt(
                    source_number=source_number,
                    form=source.form,
                    excerpt=excerpt,
                    position=file.tell() if file.seekable() else 0,
                )
