"""Tagging schemes for spans: recognize, check and convert them.

Each scheme has exactly one way to write given spans. So tags follow a scheme if writing their spans
again gives the same tags; where it does not, it gives the expected tag.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import partial

from elmore.errors import DataError, DataWarning
from elmore.tasks.metrics.spans import OUTSIDE, Span, read_spans


class TagScheme(StrEnum):
    """How tags mark the beginning and end of a span."""

    IOB1 = "iob1"  # B- only directly after a span of the same type
    IOB2 = "iob2"  # also called BIO
    BIOES = "bioes"
    BILOU = "bilou"


# The letters of each scheme: first token of a span, inside, last token, single token.
_LETTERS = {
    TagScheme.IOB1: ("I", "I", "I", "I"),
    TagScheme.IOB2: ("B", "I", "I", "B"),
    TagScheme.BIOES: ("B", "I", "E", "S"),
    TagScheme.BILOU: ("B", "I", "L", "U"),
}


def read_strictly(tags: Sequence[str], *, scheme: TagScheme, where: str = "tags") -> list[Span]:
    """Read tags that must follow a scheme; `where` is their position for error messages."""
    spans = read_spans(tags, where=where)
    wrong = _find_wrong(tags, spans, scheme)
    if wrong is not None:
        position, expected = wrong
        raise DataError(
            f"{where}, token {position + 1}: {tags[position]!r} is invalid in the scheme {scheme}, "
            f"expected {expected!r}; fix the tag, or choose another scheme "
            f"({', '.join(TagScheme)})"
        )
    return spans


def write_tags(spans: Iterable[Span], *, num_tokens: int, scheme: TagScheme) -> list[str]:
    """Return the tags of these spans in a scheme."""
    tags = [OUTSIDE] * num_tokens
    before = Span(0, 0, "")
    for span in sorted(spans):
        if not before.end <= span.start < span.end <= num_tokens:
            raise ValueError(f"{span} overlaps {before}, is empty or goes beyond {num_tokens}")
        first, inside, last, alone = _LETTERS[scheme]
        if (before.end, before.type) == (span.start, span.type) and before.end > 0:
            # Only in IOB1 do spans begin with I, which would join these two.
            first, alone = first.replace("I", "B"), alone.replace("I", "B")
        length = span.end - span.start
        letters = alone if length == 1 else first + inside * (length - 2) + last
        tags[span.start : span.end] = [
            f"{letter}-{span.type}" if span.type else letter for letter in letters
        ]
        before = span
    return tags


def convert_tags(
    tags: Sequence[str], *, source: TagScheme, target: TagScheme, where: str = "tags"
) -> list[str]:
    """Convert tags from one scheme to another; they must follow the first."""
    spans = read_strictly(tags, scheme=source, where=where)
    return write_tags(spans, num_tokens=len(tags), scheme=target)


NamePlace = Callable[[int], str]
"""Returns the position of a token of a sentence, for messages."""


def guess_scheme(sentences: Iterable[Sequence[str]], *, name: str = "the corpus") -> TagScheme:
    """Guess the scheme of sentences that are not from a file."""
    numbered = enumerate(sentences, start=1)
    return guess_scheme_of(
        ((tags, partial(_name_token, f"{name}, sentence {number}")) for number, tags in numbered),
        name=name,
    )


def _name_token(where: str, token: int) -> str:
    return f"{where}, token {token + 1}"


def guess_scheme_of(
    sentences: Iterable[tuple[Sequence[str], NamePlace]], *, name: str
) -> TagScheme:
    """Guess the scheme of a corpus: the one that fits most sentences with spans.

    Real corpora have errors, so it need not fit all of them; `read_strictly` finds the errors.
    """
    num_sentences = 0
    num_fitting: Counter[TagScheme] = Counter()
    misfits: dict[TagScheme, str] = {}
    for tags, name_place in sentences:
        spans = read_spans(tags, where=name_place(0))
        num_sentences += bool(spans)
        for scheme in TagScheme:
            wrong = _find_wrong(tags, spans, scheme)
            if wrong is None:
                num_fitting[scheme] += bool(spans)
            elif scheme not in misfits:
                misfits[scheme] = (
                    f"{name_place(wrong[0])}: {tags[wrong[0]]!r} where {scheme} expects "
                    f"{wrong[1]!r}"
                )
    if not num_sentences:
        raise DataError(
            f"{name} has no spans, so the scheme of its tags cannot be guessed; choose one "
            f"({', '.join(TagScheme)})"
        )
    best = max(TagScheme, key=lambda scheme: num_fitting[scheme])
    if 2 * num_fitting[best] <= num_sentences:
        raise DataError(
            f"{misfits[best]}; the tags of {name} follow no scheme: the best, {best}, fits only "
            f"{num_fitting[best]} of {num_sentences} sentences with spans; fix the tags"
        )
    if num_wrong := num_sentences - num_fitting[best]:
        warnings.warn(
            f"{misfits[best]}; in total, {num_wrong:,} of {num_sentences:,} sentences with spans "
            "have invalid tags, which are read as conlleval reads them",
            DataWarning,
            stacklevel=2,
        )
    return best


def _find_wrong(
    tags: Sequence[str], spans: Iterable[Span], scheme: TagScheme
) -> tuple[int, str] | None:
    """Return the position of the first tag that violates the scheme, and the expected tag."""
    expected = write_tags(spans, num_tokens=len(tags), scheme=scheme)
    positions = (position for position, tag in enumerate(tags) if tag != expected[position])
    position = next(positions, None)
    return None if position is None else (position, expected[position])
