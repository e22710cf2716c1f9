"""The text of an index: words, their occurrences, sentences and where they come from."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmore.errors import DataError
from elmore.explore.index_files import Arrays
from elmore.explore.index_state import SENTENCES, TAGS, TOKENS, IndexState
from elmore.explore.index_writer import read_words
from elmore.explore.stop_words import is_content_word
from elmore.explore.uses import Use, WordCount

Names = str | Sequence[str] | None
Numbers = NDArray[np.int64]


class IndexedText:
    """Finds tokens by word, source and part of speech. A token's number counts from 0."""

    def __init__(self, folder: Path, state: IndexState, arrays: Arrays) -> None:
        self.folder = folder
        self.tokens: NDArray[np.int32] = arrays[TOKENS]
        self.words = read_words(folder, state)
        self._state = state
        self._sentences = arrays[SENTENCES]
        self._starts = np.ascontiguousarray(self._sentences[:, 0])
        self._tags = arrays[TAGS]
        self._occurrences = arrays[state.occurrences_name]
        self._word_starts = arrays[state.word_starts_name]

    def complete(self, prefix: str, *, top: int, skip_stop_words: bool = False) -> list[WordCount]:
        """Return the most frequent words that start with `prefix`, ignoring case."""
        folded = _read_word(prefix, "prefix").casefold()
        counts = np.diff(self._word_starts)
        found = [
            WordCount(
                word=self.words[max(ids, key=lambda number: counts[number])],
                count=int(counts[ids].sum()),
            )
            for word, ids in self._folded.items()
            if word.startswith(folded) and (not skip_stop_words or is_content_word(word))
        ]
        return sorted(found, key=lambda entry: (-entry.count, entry.word))[:top]

    def count_spellings(self, ids: Sequence[int]) -> dict[str, int]:
        """Return how often each of these words occurs, most frequent first."""
        counts = {
            self.words[word]: int(self._word_starts[word + 1] - self._word_starts[word])
            for word in ids
        }
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    @cached_property
    def _folded(self) -> Mapping[str, list[int]]:
        """The ids of all spellings of each word, ignoring case."""
        folded: dict[str, list[int]] = {}
        for number, word in enumerate(self.words):
            folded.setdefault(word.casefold(), []).append(number)
        return folded

    def find_ids(self, word: str, *, match_case: bool) -> list[int]:
        """Return the ids of a word's spellings, or of this one alone."""
        ids = self._folded.get(_read_word(word, "word").casefold(), [])
        return [n for n in ids if self.words[n] == word] if match_case else ids

    def find_numbers(self, ids: Sequence[int]) -> Numbers:
        """Return the numbers of all tokens that are one of these words, in order."""
        parts = [
            self._occurrences[self._word_starts[word] : self._word_starts[word + 1]] for word in ids
        ]
        found = np.concatenate([np.empty(0, np.int64), *parts])
        return np.sort(found)

    def _find_sentences(self, numbers: Numbers) -> Numbers:
        return np.searchsorted(self._starts, numbers, side="right") - 1

    def matches(self, numbers: Numbers, *, source: Names, tag: Names) -> NDArray[np.bool_]:
        """Return which tokens are in these sources and have these tags."""
        matches = np.ones(len(numbers), bool)
        if source is not None:
            names = [entry.name for entry in self._state.sources]
            wanted = [_find_name(name, names, "source") for name in _to_list(source)]
            column = self._sentences[:, 3]
            matches &= np.isin(column[self._find_sentences(numbers)], wanted)
        if tag is not None:
            wanted = [_find_name(name, self._state.tags, "tag") + 1 for name in _to_list(tag)]
            matches &= np.isin(self._tags[numbers], wanted)
        return matches

    def make_uses(self, numbers: Numbers) -> list[Use]:
        """Return tokens with their sentences."""
        sentences = self._find_sentences(numbers)
        table, tags = self._sentences, self._tags[numbers]
        uses = []
        for number, sentence, tag in zip(
            numbers.tolist(), sentences.tolist(), tags.tolist(), strict=True
        ):
            start, line, document, source = table[sentence].tolist()
            is_last = sentence + 1 == len(table)
            end = self._state.num_tokens if is_last else int(self._starts[sentence + 1])
            tokens = [self.words[word] for word in self.tokens[start:end].tolist()]
            uses.append(
                Use(
                    number=number,
                    word=tokens[number - start],
                    sentence=sentence,
                    position=number - start,
                    tokens=tokens,
                    source=self._state.sources[source].name,
                    document=document,
                    line=line,
                    tag=self._state.tags[tag - 1] if tag else None,
                )
            )
        return uses

    def check_numbers(self, uses: Sequence[int | Use]) -> Numbers:
        """Return the numbers of some uses; raise an error for one that does not exist."""
        numbers = [use.number if isinstance(use, Use) else use for use in uses]
        for number in numbers:
            is_number = isinstance(number, int | np.integer) and not isinstance(number, bool)
            if not is_number or not 0 <= number < self._state.num_tokens:
                raise DataError(
                    f"a use is {number!r:.60}, but the uses in the index have numbers from 0 "
                    f"to {self._state.num_tokens - 1:,}; take them from `uses`"
                )
        return np.array(numbers, np.int64)


def _read_word(word: object, name: str) -> str:
    if not isinstance(word, str):
        raise DataError(f"{name} is {word!r:.60}; give a string")
    return word


def _find_name(name: str, names: Sequence[str], what: str) -> int:
    if name not in names:
        known = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise DataError(
            f"the index has no {what} {name!r:.60}; "
            + (f"choose one of: {known:.300}" if names else f"it has no {what}s")
        )
    return names.index(name)


def _to_list(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
