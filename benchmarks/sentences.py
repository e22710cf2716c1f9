"""Sentences for benchmarks, from a text file or generated."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from elmore.text.files import guess_form, read_sentences

Sentences = list[list[str]]

_SYLLABLES = ["ka", "to", "mi", "re", "sul", "en", "dor", "ba", "phi", "on", "ter", "ly"]


def load_sentences(text: Path | None, *, num_tokens: int) -> Sentences:
    """Return the beginning of a text, at least this many tokens if it has them."""
    source = generate_sentences() if text is None else read_sentences(text, form=guess_form(text))
    return take_tokens((sentence for sentence in source if sentence), num_tokens=num_tokens)


def take_tokens(sentences: Iterator[list[str]], *, num_tokens: int) -> Sentences:
    """Take whole sentences until they have this many tokens."""
    taken: Sentences = []
    num_taken = 0
    for sentence in sentences:
        taken.append(sentence)
        num_taken += len(sentence)
        if num_taken >= num_tokens:
            break
    return taken


def generate_sentences(*, num_words: int = 50_000, seed: int = 0) -> Iterator[list[str]]:
    """Draw words by rank, the frequent ones short (Zipf), and lengths around a mean of 25."""
    draw = random.Random(seed)
    words = [_spell_rank(rank) for rank in range(num_words)]
    weights = list(accumulate(1 / (rank + 2.7) for rank in range(num_words)))
    while True:
        length = min(max(1, round(draw.lognormvariate(3.1, 0.5))), 120)
        yield draw.choices(words, cum_weights=weights, k=length)


def _spell_rank(rank: int) -> str:
    word = ""
    while True:
        rank, syllable = divmod(rank, len(_SYLLABLES))
        word += _SYLLABLES[syllable]
        if rank == 0:
            return word
        rank -= 1


def choose_window(sentences: Sentences, *, num_sentences: int, mean_tokens: int) -> Sentences:
    """Return the consecutive sentences whose mean length is closest to the given one."""
    ends = [0, *accumulate(len(sentence) for sentence in sentences)]
    starts = range(max(1, len(sentences) - num_sentences + 1))

    def distance(start: int) -> int:
        stop = min(start + num_sentences, len(sentences))
        return abs(ends[stop] - ends[start] - mean_tokens * num_sentences)

    best = min(starts, key=distance)
    return sentences[best : best + num_sentences]


def choose_words(sentences: Sentences, *, num_words: int) -> list[str]:
    """Return the first distinct words of a text."""
    distinct = list(dict.fromkeys(token for sentence in sentences for token in sentence))
    if len(distinct) < num_words:
        raise SystemExit(f"the text has {len(distinct)} distinct words of {num_words} wanted")
    return distinct[:num_words]


def rank_words(sentences: Sequence[Sequence[str]]) -> dict[str, int]:
    """Number the words of a text, the most frequent first."""
    counts = Counter(token for sentence in sentences for token in sentence)
    return {word: rank for rank, (word, _) in enumerate(counts.most_common())}
