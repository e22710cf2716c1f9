"""Find the words that are more frequent around some uses than around the others."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmore.explore.stop_words import is_content_word
from elmore.explore.uses import Use

# Tokens on either side of a use that count as its context.
MARGIN = 10
# A word in fewer contexts is chance; a log-odds ratio below so many deviations too.
MIN_CONTEXTS = 2
MIN_DEVIATIONS = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class DistinctiveWord:
    """A word near the uses of a group."""

    word: str
    num_inside: int  # contexts of the group that have it
    num_outside: int


def find_distinctive_words(
    uses: Sequence[Use], is_inside: NDArray[np.bool_], *, top: int = 8
) -> list[DistinctiveWord]:
    """Return the words with the highest log-odds ratio, in deviations, for being inside.

    Case is ignored. Stop words, punctuation, numbers and the words of the uses are left out.
    """
    own = {use.word.casefold() for use in uses}
    inside: Counter[str] = Counter()
    outside: Counter[str] = Counter()
    for use, is_member in zip(uses, is_inside, strict=True):
        (inside if is_member else outside).update(_find_context(use) - own)
    num_inside, num_outside = int(is_inside.sum()), int((~is_inside).sum())
    scored = []
    for word, count in inside.items():
        others = outside[word]
        score = _score(count, num_inside - count, others, num_outside - others)
        is_enough = count >= min(MIN_CONTEXTS, num_inside)
        if is_enough and (score > MIN_DEVIATIONS or not num_outside):
            scored.append((-score, -count, word))
    return [
        DistinctiveWord(word=word, num_inside=-count, num_outside=outside[word])
        for _, count, word in sorted(scored)[:top]
    ]


def _find_context(use: Use) -> set[str]:
    start = max(0, use.position - MARGIN)
    near = [*use.tokens[start : use.position], *use.tokens[use.position + 1 :][:MARGIN]]
    return set(filter(is_content_word, {token.casefold() for token in near}))


def _score(inside_with: int, inside_without: int, outside_with: int, outside_without: int) -> float:
    """Return the log-odds ratio divided by its standard deviation, with 0.5 added to each count."""
    counts = np.array([inside_with, inside_without, outside_with, outside_without]) + 0.5
    ratio = np.log(counts[0] * counts[3] / (counts[1] * counts[2]))
    return float(ratio / np.sqrt((1 / counts).sum()))
