"""Count words, and choose a vocabulary of the frequent ones."""

from collections.abc import Iterable, Sequence

from elmore.text.vocabulary import BEGIN_WORD, END_WORD, UNKNOWN_WORD, fits_word_list

MARKS = (BEGIN_WORD, END_WORD, UNKNOWN_WORD)


class WordCounts:
    """How often each word occurs, in bounded memory.

    When there are more than `max_types`, the rarest are forgotten until half are left. A word that
    comes back counts from 0, so that its count is too low by at most `max_missed`.
    """

    def __init__(self, *, max_types: int) -> None:
        self._max_types = max_types
        self._counts: dict[str, int] = {}
        self.max_missed = 0

    def add(self, words: Sequence[str], counts: Iterable[int]) -> None:
        """Count more of them; the words of one call are distinct."""
        known = self._counts
        for word, count in zip(words, counts, strict=True):
            if count:
                known[word] = known.get(word, 0) + count
        if len(known) > self._max_types:
            self._forget_rarest()

    def _forget_rarest(self) -> None:
        """Forget by count alone, so that the order of the words has no say."""
        kept = self._counts
        least = 0
        while len(kept) > self._max_types // 2:
            least += 1
            kept = {word: count for word, count in kept.items() if count > least}
        self._counts = kept
        self.max_missed += least

    def choose(self, *, max_words: int, min_count: int, first: Sequence[str] = MARKS) -> list[str]:
        """Return `first`, and behind it the most frequent others; of equal ones, by code points."""
        known = frozenset(first)
        words = [
            word
            for word, count in self._counts.items()
            if count >= min_count and word not in known and fits_word_list(word)
        ]
        words.sort()
        words.sort(key=self._counts.__getitem__, reverse=True)
        return [*first, *words[:max_words]]
