"""Divide text files into shards: pieces of large files, and groups of small ones.

The same files give the same shards everywhere, so that any process can embed any of them.
"""

import hashlib
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

from elmore.embed.many_files.inputs import TextInput, open_stream
from elmore.errors import DataError, ElmoreError
from elmore.text.excerpts import DocumentCuts, cut_text
from elmore.text.files import (
    LINE_FORMS,
    Excerpt,
    TextForm,
    collapse_breaks,
    read_bytes,
    read_numbered_excerpt,
)
from elmore.text.language import Language, warn_if_unsegmented
from elmore.text.line_sentences import NumberedSentence

_SKIP_BYTES = 1 << 20
_BYTES_LOOKED_AT = 1 << 16


@dataclass(frozen=True, kw_only=True)
class TextSpan:
    """Consecutive bytes of the (decompressed) text of a file."""

    source: str
    form: TextForm
    start: int
    num_bytes: int
    first_line: int
    continues_line: bool = False


@dataclass(frozen=True, kw_only=True)
class TextShard:
    """The text of one vector file."""

    number: int
    spans: tuple[TextSpan, ...]
    sha256: str  # of the text, its names and its boundaries

    @property
    def num_bytes(self) -> int:
        """Bytes of text."""
        return sum(span.num_bytes for span in self.spans)


@dataclass(kw_only=True)
class ShardPlan:
    """All shards of a job, and the files that could not be read to their end."""

    shards: list[TextShard] = field(default_factory=list)
    bad_inputs: dict[str, str] = field(default_factory=dict)  # the reason by name


def plan_shards(
    inputs: Iterable[TextInput],
    *,
    shard_bytes: int,
    language: Language,
    documents: DocumentCuts,
) -> ShardPlan:
    """Read all files once and divide them; small files share a shard."""
    plan = ShardPlan()
    spans: list[TextSpan] = []
    digest = hashlib.sha256()

    def close() -> None:
        nonlocal spans, digest
        if spans:
            plan.shards.append(
                TextShard(number=len(plan.shards), spans=tuple(spans), sha256=digest.hexdigest())
            )
        spans, digest = [], hashlib.sha256()

    for text in inputs:
        try:
            excerpts = _read_excerpts(
                text, shard_bytes=shard_bytes, language=language, documents=documents
            )
            for span, data in excerpts:
                if language is Language.EN and span.form in (TextForm.RAW, TextForm.WRAPPED):
                    warn_if_unsegmented(data[:_BYTES_LOOKED_AT].decode(errors="ignore"))
                if sum(other.num_bytes for other in spans) + len(data) > shard_bytes:
                    close()
                spans.append(span)
                _hash(digest, span, data)
        except ElmoreError as error:
            plan.bad_inputs[text.name] = str(error)
    close()
    return plan


def _read_excerpts(
    text: TextInput, *, shard_bytes: int, language: Language, documents: DocumentCuts
) -> Iterator[tuple[TextSpan, bytes]]:
    start = 0
    with open_stream(text.name) as stream:
        excerpts = cut_text(
            stream,
            name=text.name,
            form=text.form,
            max_bytes=shard_bytes,
            language=language,
            documents=documents,
        )
        for excerpt in excerpts:
            span = TextSpan(
                source=text.name,
                form=text.form,
                start=start,
                num_bytes=len(excerpt.data),
                first_line=excerpt.first_line,
                continues_line=excerpt.continues_line,
            )
            start += len(excerpt.data)
            yield span, excerpt.data


def _hash(digest: "hashlib._Hash", span: TextSpan, data: bytes) -> None:
    edge = f"{span.source}\n{span.form} {span.start} {span.first_line} {len(data)}\n"
    digest.update(edge.encode("utf-8", "surrogateescape"))
    digest.update(data)


def read_shard(
    shard: TextShard,
    *,
    language: Language,
    keeps_document_ends: bool,
    without: Container[str] = (),
) -> Iterator[NumberedSentence]:
    """Yield the sentences of a shard, except those of the files `without`.

    Raises an error if the text has changed.
    """
    previous: str | None = None
    for span, data in _read_spans(shard):
        if span.source in without:
            continue
        if previous not in (None, span.source) and keeps_document_ends:
            yield NumberedSentence([], 0, source=span.source)  # a file ends a document
        previous = span.source
        yield from _read_sentences(
            span, data, language=language, keeps_document_ends=keeps_document_ends
        )


def find_bad_files(
    shard: TextShard, *, language: Language, max_sentence_tokens: int
) -> dict[str, str]:
    """Return the files of a shard whose text cannot be embedded, and why."""
    bad: dict[str, str] = {}
    for span, data in _read_spans(shard):
        sentences = _read_sentences(span, data, language=language, keeps_document_ends=False)
        try:
            reason = _find_too_long(sentences, source=span.source, limit=max_sentence_tokens)
        except DataError as error:
            reason = str(error)
        if reason is not None:
            bad.setdefault(span.source, reason)
    return bad


def _find_too_long(sentences: Iterable[NumberedSentence], *, source: str, limit: int) -> str | None:
    for sentence in sentences:
        if len(sentence.tokens) > limit:
            return (
                f"{source}, line {sentence.line}: a sentence has {len(sentence.tokens)} tokens, "
                f"more than max_sentence_tokens = {limit}; split the text, or raise the limit if "
                "memory allows"
            )
    return None


def _read_spans(shard: TextShard) -> list[tuple[TextSpan, bytes]]:
    texts = [(span, _read_span(span)) for span in shard.spans]
    digest = hashlib.sha256()
    for span, data in texts:
        _hash(digest, span, data)
    if digest.hexdigest() != shard.sha256:
        names = ", ".join(dict.fromkeys(span.source for span in shard.spans))
        raise DataError(
            f"the text of {names:.200} has changed since the job was planned; rerun the command"
        )
    return texts


def _read_sentences(
    span: TextSpan, data: bytes, *, language: Language, keeps_document_ends: bool
) -> Iterator[NumberedSentence]:
    excerpt = Excerpt(
        data=data,
        name=span.source,
        first_line=span.first_line,
        starts_file=span.start == 0,
        continues_line=span.continues_line,
    )
    sentences = read_numbered_excerpt(excerpt, form=span.form, language=language)
    if span.form not in LINE_FORMS:
        sentences = collapse_breaks(sentences)
    for sentence in sentences:
        if sentence.tokens or keeps_document_ends or span.form in LINE_FORMS:
            yield sentence._replace(source=span.source)


def _read_span(span: TextSpan) -> bytes:
    with open_stream(span.source) as stream:
        try:
            stream.seek(span.start)  # decompressing streams can only read forward
        except (AttributeError, OSError, ValueError):
            left = span.start
            while left and (part := read_bytes(stream, min(left, _SKIP_BYTES), name=span.source)):
                left -= len(part)
        parts = []
        left = span.num_bytes
        while left and (part := read_bytes(stream, left, name=span.source)):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
