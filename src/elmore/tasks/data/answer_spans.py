"""Where the tokens of a text are in it, and which of them an answer covers."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum

Span = tuple[int, int]  # characters text[start:end], or tokens[start:end]


class Fit(StrEnum):
    """How an answer's tokens were found."""

    GIVEN = "given"
    """Where the data says."""

    MOVED = "moved"
    """At the occurrence nearest to there that begins and ends with tokens, as there it does not."""

    WIDENED = "widened"
    """The tokens hold more than the answer."""

    MISSING = "missing"
    """The text does not have the answer."""


def find_offsets(text: str, tokens: Iterable[str]) -> tuple[Span, ...]:
    """Return where each token begins and ends; together they are the text without its whitespace.

    >>> find_offsets(" Don't go", ["Do", "n't", "go"])
    ((1, 3), (3, 6), (7, 9))
    """
    offsets: list[Span] = []
    end = 0
    for token in tokens:
        start = text.index(token, end)
        end = start + len(token)
        offsets.append((start, end))
    return tuple(offsets)


def align_answer(
    text: str, offsets: Sequence[Span], *, answer: str, start: int
) -> tuple[Span | None, Fit]:
    """Return the tokens of `answer`, said to be at character `start`, and how they were found.

    Where the place given is inside of a word ("7" of "1973"), it was hardly meant, and an
    occurrence that is whole tokens is preferred to it.
    """
    stripped = answer.strip()
    start += len(answer) - len(answer.lstrip())
    occurrences = _find_all(text, stripped)
    occurrences.sort(key=lambda place: (abs(place - start), place))
    starts = [offset for offset, _ in offsets]
    ends = [offset for _, offset in offsets]
    is_meant = start in occurrences and _stands_alone(text, start, start + len(stripped))
    for place in occurrences[: 1 if is_meant else None]:
        span = _cover(starts, ends, place, place + len(stripped))
        if (starts[span[0]], ends[span[1] - 1]) == (place, place + len(stripped)):
            return span, Fit.GIVEN if place == start else Fit.MOVED
    if not occurrences:
        return None, Fit.MISSING
    return _cover(starts, ends, occurrences[0], occurrences[0] + len(stripped)), Fit.WIDENED


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether no letter or digit touches text[start:end], such as "20" of "20-year"."""
    return not (text[max(0, start - 1) : start].isalnum() or text[end : end + 1].isalnum())


def _cover(starts: list[int], ends: list[int], start: int, end: int) -> Span:
    """Return the tokens that have characters between `start` and `end`."""
    return bisect_right(ends, start), bisect_left(starts, end)


def _find_all(text: str, part: str) -> list[int]:
    """Return where `part` begins in `text`, overlaps too."""
    places: list[int] = []
    place = text.find(part)
    while place >= 0:
        places.append(place)
        place = text.find(part, place + 1)
    return places
