"""Spans as tags: read spans from any tags, write them in a scheme, guess the scheme of a corpus.

Spans are read as by conlleval, which accepts any tags: invalid sequences still give spans. seqeval
does the same by default; its strict mode drops spans that violate the scheme, so its scores differ.
conlleval itself knows only IOB1 and IOB2, and joins adjacent spans of one type in BIOES; here, as
in seqeval, they are two.

Each scheme has exactly one way to write given spans. So tags follow a scheme if writing their spans
again gives the same tags; where it does not, it gives the expected tag.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from elmore.errors import DataError, DataWarning, warn_caller

OUTSIDE = "O"
_BEGINNING = {"B", "S", "U"}
_ENDING = {"E", "S", "L", "U"}
_KNOWN = {OUTSIDE, "I"} | _BEGINNING | _ENDING


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Tokens from `start` up to but not including `end`."""

    start: int
    end: int
    type: str


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


def read_spans(tags: Sequence[str], *, where: str = "tags") -> list[Span]:
    """Read tags of any scheme, even invalid ones, as conlleval does; meant for predictions."""
    spans: list[Span] = []
    start = 0
    previous, previous_type = OUTSIDE, ""
    for position, tag in enumerate([*tags, OUTSIDE]):
        letter, _, span_type = tag.partition("-")  # a type may have hyphens: B-C-ARG1
        if letter not in _KNOWN:
            raise DataError(
                f"{where}, token {position + 1}: expected O, or one of B, I, E, S, L and U with a "
                f"hyphen and a type, such as B-PER, got {tag!r}; fix the tag"
            )
        is_new = (
            letter in _BEGINNING
            or previous == OUTSIDE
            or previous in _ENDING
            or previous_type != span_type
        )
        if previous != OUTSIDE and (is_new or letter == OUTSIDE):
            spans.append(Span(start, position, previous_type))
        if is_new:
            start = position
        previous, previous_type = letter, span_type
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


NamePosition = Callable[[int], str]
"""Returns the position of a token of a sentence, for messages."""


class SchemeGuess:
    """Guesses the scheme of a corpus, sentence by sentence: the one that fits most of them.

    Real corpora have errors, so it need not fit all of them.
    """

    def __init__(self) -> None:
        self.types: set[str] = set()  # of all spans
        self._num_sentences = 0  # with spans
        self._num_fitting: Counter[TagScheme] = Counter()
        self._misfits: dict[TagScheme, str] = {}

    def add(self, tags: Sequence[str], *, name_position: NamePosition) -> None:
        """Count a sentence; `name_position` gives the positions of its tokens for messages."""
        spans = read_spans(tags)
        self.types.update(span.type for span in spans)
        self._num_sentences += bool(spans)
        for scheme in TagScheme:
            wrong = find_wrong_tag(tags, spans, scheme)
            if wrong is None:
                self._num_fitting[scheme] += bool(spans)
            elif scheme not in self._misfits:
                position, expected = wrong
                self._misfits[scheme] = (
                    f"{name_position(position)}: {tags[position]!r} where {scheme} expects "
                    f"{expected!r}"
                )

    def find_best(self, *, name: str) -> TagScheme:
        """Return the scheme; warn of sentences that it does not fit, refuse if they are most."""
        if not self._num_sentences:
            raise DataError(
                f"{name} has no spans, so the scheme of its tags cannot be guessed; choose one "
                f"({', '.join(TagScheme)})"
            )
        best = max(TagScheme, key=lambda scheme: self._num_fitting[scheme])
        num_fitting, num_sentences = self._num_fitting[best], self._num_sentences
        if 2 * num_fitting <= num_sentences:
            raise DataError(
                f"{self._misfits[best]}; the tags of {name} follow no scheme: the best, {best}, "
                f"fits only {num_fitting} of {num_sentences} sentences with spans; fix the tags"
            )
        if num_wrong := num_sentences - num_fitting:
            warn_caller(
                f"{self._misfits[best]}; in total, {num_wrong:,} of {num_sentences:,} sentences "
                "with spans have invalid tags, which are read as conlleval reads them",
                DataWarning,
            )
        return best


def find_wrong_tag(
    tags: Sequence[str], spans: Iterable[Span], scheme: TagScheme
) -> tuple[int, str] | None:
    """Return the position of the first tag that violates the scheme, and the expected tag.

    >>> tags = ["B-PER", "O", "I-LOC"]
    >>> find_wrong_tag(tags, read_spans(tags), TagScheme.IOB2)
    (2, 'B-LOC')
    """
    expected = write_tags(spans, num_tokens=len(tags), scheme=scheme)
    positions = (position for position, tag in enumerate(tags) if tag != expected[position])
    position = next(positions, None)
    return None if position is None else (position, expected[position])
