"""Count words, and choose the most frequent ones as the vocabulary."""

from collections.abc import Iterable, Sequence

from elmore.text.vocabulary import BEGIN_WORD, END_WORD, UNKNOWN_WORD, fits_word_list

MARKS = (BEGIN_WORD, END_WORD, UNKNOWN_WORD)


class WordCounts:
    """Word counts in bounded memory.

    When there are more than `max_types` words, the rarest are dropped until half are left. A word
    that occurs again starts from 0, so its count is too low by at most `max_missed`.
    """

    def __init__(self, *, max_types: int) -> None:
        self._max_types = max_types
        self._counts: dict[str, int] = {}
        self.max_missed = 0

    def add(self, words: Sequence[str], counts: Iterable[int]) -> None:
        """Add counts; the words of one call must be distinct."""
        known = self._counts
        for word, count in zip(words, counts, strict=True):
            if count:
                known[word] = known.get(word, 0) + count
        if len(known) > self._max_types:
            self._forget_rarest()

    def _forget_rarest(self) -> None:
        """Drop words by count only, so that the result does not depend on their order."""
        kept = self._counts
        least = 0
        while len(kept) > self._max_types // 2:
            least += 1
            kept = {word: count for word, count in kept.items() if count > least}
        self._counts = kept
        self.max_missed += least

    def choose(self, *, max_words: int, min_count: int, first: Sequence[str] = MARKS) -> list[str]:
        """Return `first`, then the most frequent other words; ties are ordered by code points."""
        known = frozenset(first)
        words = [
            word
            for word, count in self._counts.items()
            if count >= min_count and word not in known and fits_word_list(word)
        ]
        words.sort()
        words.sort(key=self._counts.__getitem__, reverse=True)
        return [*first, *words[:max_words]]
