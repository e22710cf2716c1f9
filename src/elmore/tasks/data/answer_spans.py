"""Find the character offsets of tokens in a text, and the tokens that an answer covers."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum

Span = tuple[int, int]  # characters text[start:end], or tokens[start:end]


class Fit(StrEnum):
    """How an answer's tokens were found."""

    GIVEN = "given"
    """At the offset in the data."""

    MOVED = "moved"
    """At the nearest other occurrence that consists of whole tokens."""

    WIDENED = "widened"
    """The tokens include more than the answer."""

    MISSING = "missing"
    """The answer is not in the text."""


def find_offsets(text: str, tokens: Iterable[str]) -> tuple[Span, ...]:
    """Return the start and end of each token; the tokens are the whole text except whitespace.

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
    """Return the tokens of `answer`, annotated at character `start`, and how they were found.

    If that offset is inside a word ("7" in "1973"), it is probably wrong, and an occurrence of
    whole tokens is preferred.
    """
    stripped = answer.strip()
    start += len(answer) - len(answer.lstrip())
    occurrences = _find_all(text, stripped)
    occurrences.sort(key=lambda offset: (abs(offset - start), offset))
    starts = [offset for offset, _ in offsets]
    ends = [offset for _, offset in offsets]
    is_plausible = start in occurrences and _is_whole(text, start, start + len(stripped))
    for offset in occurrences[: 1 if is_plausible else None]:
        span = _cover(starts, ends, offset, offset + len(stripped))
        if (starts[span[0]], ends[span[1] - 1]) == (offset, offset + len(stripped)):
            return span, Fit.GIVEN if offset == start else Fit.MOVED
    if not occurrences:
        return None, Fit.MISSING
    return _cover(starts, ends, occurrences[0], occurrences[0] + len(stripped)), Fit.WIDENED


def _is_whole(text: str, start: int, end: int) -> bool:
    """Return whether no letter or digit is next to text[start:end], such as "20" in "20-year"."""
    return not (text[max(0, start - 1) : start].isalnum() or text[end : end + 1].isalnum())


def _cover(starts: list[int], ends: list[int], start: int, end: int) -> Span:
    """Return the tokens that have characters between `start` and `end`."""
    return bisect_right(ends, start), bisect_left(starts, end)


def _find_all(text: str, part: str) -> list[int]:
    """Return the offsets of `part` in `text`, including overlapping ones."""
    offsets: list[int] = []
    offset = text.find(part)
    while offset >= 0:
        offsets.append(offset)
        offset = text.find(part, offset + 1)
    return offsets
