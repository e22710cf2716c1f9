"""Tagged sentences as probes use them: a whole file's at once, and tags guessed by counting."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from elmore.tasks.data.columns import TaggedSentence, read_columns

__all__ = ["TaggedSentence", "guess_by_frequency", "read_tagged"]


def read_tagged(path: Path, *, column: str | int = "upos") -> list[TaggedSentence]:
    """Read all sentences of a file; `read_columns` says what `column` may be."""
    return list(read_columns(path, column=column))


def guess_by_frequency(
    train: Iterable[TaggedSentence], sentences: Iterable[TaggedSentence]
) -> list[str]:
    """Give each token of `sentences` its most frequent tag in `train`, as one list.

    A token that is not there, spelled as it is, gets the most frequent tag of all; of tags equally
    frequent, the one met first counts.
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
