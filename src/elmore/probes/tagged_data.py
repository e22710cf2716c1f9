"""Tagged sentences for probes, and a baseline that guesses the most frequent tag."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from elmore.tasks.data.columns import TaggedSentence, read_columns

__all__ = ["TaggedSentence", "guess_by_frequency", "read_tagged"]


def read_tagged(path: Path, *, column: str | int = "upos") -> list[TaggedSentence]:
    """Read all sentences of a file; see `read_columns` for `column`."""
    return list(read_columns(path, column=column))


def guess_by_frequency(
    train: Iterable[TaggedSentence], sentences: Iterable[TaggedSentence]
) -> list[str]:
    """Return the most frequent tag in `train` of each token in `sentences`, as one list.

    A token that is not in `train` gets the most frequent tag overall. Ties go to the tag that comes
    first in the data.
    """
    by_token: defaultdict[str, Counter[str]] = defaultdict(Counter)
    overall: Counter[str] = Counter()
    for sentence in train:
        overall.update(sentence.tags)
        for token, tag in zip(sentence.tokens, sentence.tags, strict=True):
            by_token[token][tag] += 1
    guesses = {token: tags.most_common(1)[0][0] for token, tags in by_token.items()}
    fallback = overall.most_common(1)[0][0]
    return [guesses.get(token, fallback) for sentence in sentences for token in sentence.tokens]
