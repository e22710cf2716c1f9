"""How often the nearest use of a word has the same label, such as its sense or part of speech.

Shapes: N uses, D numbers of a vector.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmore.errors import DataError
from elmore.probes.sense_data import SenseSentence

ROWS_AT_ONCE = 1024
# Context-free vectors have equal similarities, except for rounding.
TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class WordUse:
    """The position and label of a use of a word."""

    sentence: int  # counted from 0
    position: int
    label: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """How often the nearest use has the same label, and how often a random use does."""

    num_uses: int
    agreeing: float
    expected: float


def measure_agreement(
    vectors: NDArray[np.float32], labels: Sequence[str], sentence_ids: Sequence[int]
) -> Agreement:
    """Compare each use's label with that of its nearest neighbor by cosine in other sentences.

    If several uses are equally near, the share of them that agrees counts, as if one of them were
    chosen at random.
    """
    if not len(vectors) == len(labels) == len(sentence_ids):
        raise ValueError(
            f"expected one label and one sentence for each of {len(vectors)} vectors, got "
            f"{len(labels)} and {len(sentence_ids)}"
        )
    if len(set(sentence_ids)) < 2:
        raise DataError(
            f"expected uses in two sentences or more, got {len(labels)} in "
            f"{len(set(sentence_ids))}; give more text"
        )
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    units = vectors / np.where(lengths > 0, lengths, 1.0)  # float64, to round less than TOLERANCE
    label_numbers = np.unique(np.array(labels), return_inverse=True)[1]
    sentences = np.array(sentence_ids)
    agreeing, expected = [], []
    for start in range(0, len(units), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        is_other = sentences[rows, np.newaxis] != sentences  # (rows, N)
        is_same = label_numbers[rows, np.newaxis] == label_numbers
        cosines = np.where(is_other, units[rows] @ units.T, -np.inf)
        is_nearest = is_other & (cosines >= cosines.max(axis=1, keepdims=True) - TOLERANCE)
        agreeing.append(_share(is_same, among=is_nearest))
        expected.append(_share(is_same, among=is_other))
    return Agreement(
        num_uses=len(units),
        agreeing=float(np.concatenate(agreeing).mean()),
        expected=float(np.concatenate(expected).mean()),
    )


def collect_word_uses(
    sentences: Iterable[SenseSentence], words: Iterable[str], *, by_lemma: bool = False
) -> dict[str, list[WordUse]]:
    """Find the uses of each word, by its form (ignoring case) or by its lemma, with its sense.

    A use with several senses is labeled with the first. Words inside longer targets don't count.
    """
    by_form = {word.casefold(): word for word in words}
    uses: dict[str, list[WordUse]] = {word: [] for word in by_form.values()}
    for number, sentence in enumerate(sentences):
        for target in sentence.targets:
            form = target.lemma if by_lemma else sentence.tokens[target.start]
            word = by_form.get(form.casefold())
            if word is not None and target.end - target.start == 1:
                use = WordUse(sentence=number, position=target.start, label=target.keys[0])
                uses[word].append(use)
    return uses


def _share(is_same: NDArray[np.bool_], *, among: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Reduce (rows, N) to (rows,)."""
    return (is_same & among).sum(axis=1) / among.sum(axis=1)
