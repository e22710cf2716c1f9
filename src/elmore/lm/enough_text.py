"""Whether a corpus is large enough to learn anything from it."""

from elmore.corpus.corpus import Corpus
from elmore.corpus.word_counts import MARKS
from elmore.errors import DataError
from elmore.lm.settings import TrainingSettings
from elmore.wording import count


def find_shortage(corpus: Corpus, *, window: int) -> str | None:
    """Return why nothing can be learned from a corpus and what to do, or None.

    A text shorter than one window is read several times within each step and predicted from
    itself; without words in the vocabulary every token is predicted as unknown.
    """
    train = corpus.train
    if train.num_symbols < window:
        return (
            f"the text to train on is too short to learn from: {count(train.num_tokens, 'token')} "
            f"({train.num_symbols:,} with sentence markers), fewer than the {window:,} of one "
            "training.window; prepare more text"
        )
    if not any(word and word not in MARKS for word in corpus.vocabulary):
        return (
            f"the vocabulary has no words, only {', '.join(MARKS)}; prepare more text, or lower "
            "--min-count"
        )
    return None


def check_enough_text(corpus: Corpus, *, window: int) -> None:
    """Refuse a corpus from which nothing can be learned."""
    shortage = find_shortage(corpus, window=window)
    if shortage is not None:
        raise DataError(shortage)


def find_overlap(corpus: Corpus, training: TrainingSettings) -> str | None:
    """Return what to tell the user of a text that is shorter than what one step reads, or None."""
    per_step = training.rows * training.window
    if corpus.train.num_symbols >= per_step:
        return None
    num_symbols = count(corpus.train.num_symbols, "symbol")
    return (
        f"the text to train on is shorter than one step: {num_symbols}, and "
        f"{training.rows} rows of {training.window} read {per_step:,}; expect little, or use more "
        "text or fewer rows (--set training.rows=...)"
    )
