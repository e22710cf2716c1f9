"""The ways in which tags mark spans: told apart, held to, and turned into one another.

A scheme writes given spans in one way only. So tags follow it if their spans, written again, are
the same tags; where they are not, the scheme says what should be there.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import partial

from elmore.errors import DataError, DataWarning
from elmore.tasks.metrics.spans import OUTSIDE, Span, read_spans


class TagScheme(StrEnum):
    """How tags mark where a span begins and ends."""

    IOB1 = "iob1"  # B- only where a span of the same type ends just before
    IOB2 = "iob2"  # also called BIO
    BIOES = "bioes"
    BILOU = "bilou"


# Of each scheme: the first token of a span, those inside, the last, and a token all alone.
_LETTERS = {
    TagScheme.IOB1: ("I", "I", "I", "I"),
    TagScheme.IOB2: ("B", "I", "I", "B"),
    TagScheme.BIOES: ("B", "I", "E", "S"),
    TagScheme.BILOU: ("B", "I", "L", "U"),
}


def read_strictly(tags: Sequence[str], *, scheme: TagScheme, where: str = "tags") -> list[Span]:
    """Read tags that have to follow a scheme, as those of a corpus do; `where` is their place."""
    spans = read_spans(tags, where=where)
    wrong = _find_wrong(tags, spans, scheme)
    if wrong is not None:
        position, wanted = wrong
        raise DataError(
            f"{where}, token {position + 1}: {tags[position]!r} cannot be in the scheme {scheme}, "
            f"which has {wanted!r} here; mend the tag, or choose another scheme "
            f"({', '.join(TagScheme)})"
        )
    return spans


def write_tags(spans: Iterable[Span], *, num_tokens: int, scheme: TagScheme) -> list[str]:
    """Return the one way in which a scheme writes these spans."""
    tags = [OUTSIDE] * num_tokens
    before = Span(0, 0, "")
    for span in sorted(spans):
        if not before.end <= span.start < span.end <= num_tokens:
            raise ValueError(f"{span} overlaps {before}, is empty or goes beyond {num_tokens}")
        first, inside, last, alone = _LETTERS[scheme]
        if (before.end, before.type) == (span.start, span.type) and before.end > 0:
            # Only IOB1 begins with an I, and only here would that join two spans.
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
    """Write in one scheme what is read strictly in another."""
    spans = read_strictly(tags, scheme=source, where=where)
    return write_tags(spans, num_tokens=len(tags), scheme=target)


NamePlace = Callable[[int], str]
"""Where a token of a sentence is, for a message."""


def guess_scheme(sentences: Iterable[Sequence[str]], *, name: str = "the corpus") -> TagScheme:
    """Tell the scheme of sentences that are of no file."""
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
    """Tell the scheme of a corpus: no two of them write a span alike, so any span gives it away.

    Real corpora have slips: the scheme that fits most sentences is it. Reading strictly finds them.
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
                    f"{name_place(wrong[0])}: {tags[wrong[0]]!r} where {scheme} has {wrong[1]!r}"
                )
    if not num_sentences:
        raise DataError(
            f"{name} has no span in its tags, so that their scheme cannot be told; say which it is "
            f"({', '.join(TagScheme)})"
        )
    best = max(TagScheme, key=lambda scheme: num_fitting[scheme])
    if 2 * num_fitting[best] <= num_sentences:
        raise DataError(
            f"{misfits[best]}; the tags of {name} follow no scheme, as {best} fits best and that "
            f"only {num_fitting[best]} of {num_sentences} sentences with spans: mend them"
        )
    if num_wrong := num_sentences - num_fitting[best]:
        warnings.warn(
            f"{misfits[best]}; in all, {num_wrong:,} of {num_sentences:,} sentences with spans "
            "have tags that cannot be, which are read as conlleval reads them",
            DataWarning,
            stacklevel=2,
        )
    return best


def _find_wrong(
    tags: Sequence[str], spans: Iterable[Span], scheme: TagScheme
) -> tuple[int, str] | None:
    """Return the first tag that the scheme would write otherwise, and how."""
    wanted = write_tags(spans, num_tokens=len(tags), scheme=scheme)
    places = (place for place, tag in enumerate(tags) if tag != wanted[place])
    place = next(places, None)
    return None if place is None else (place, wanted[place])
