"""Check whether a corpus is large enough to learn anything from."""

from elmore.corpus.corpus import Corpus
from elmore.corpus.word_counts import MARKS
from elmore.errors import DataError
from elmore.lm.settings import TrainingSettings
from elmore.wording import count


def find_shortage(corpus: Corpus, *, window: int) -> str | None:
    """Return why nothing can be learned from a corpus and what to do, or None.

    A text shorter than one window would be read several times within each step and predicted from
    itself; without words in the vocabulary every target would be the unknown word.
    """
    train = corpus.train
    if train.num_symbols < window:
        return (
            f"the training text is too short: {count(train.num_tokens, 'token')} "
            f"({train.num_symbols:,} with sentence markers), less than one window "
            f"(training.window = {window:,}); prepare more text"
        )
    if not any(word and word not in MARKS for word in corpus.vocabulary):
        return (
            f"the vocabulary has no words, only {', '.join(MARKS)}; prepare more text, or lower "
            "--min-count"
        )
    return None


def check_enough_text(corpus: Corpus, *, window: int) -> None:
    """Raise an error if nothing can be learned from a corpus."""
    shortage = find_shortage(corpus, window=window)
    if shortage is not None:
        raise DataError(shortage)


def find_overlap(
    corpus: Corpus,
    training: TrainingSettings,
    *,
    remedy: str = "use more text or fewer rows (--set training.rows=...)",
) -> str | None:
    """Return a warning if the training text is shorter than what one step reads, or None."""
    per_step = training.rows * training.window
    if corpus.train.num_symbols >= per_step:
        return None
    num_symbols = count(corpus.train.num_symbols, "symbol")
    return (
        f"the training text has only {num_symbols}, but one step reads {per_step:,} "
        f"({training.rows} rows of {training.window}); {remedy}, or expect a poor model"
    )
