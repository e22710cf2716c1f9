"""Draw the words a softmax is compared with: frequent ones surely, rare ones by their rank.

Shapes: V words by falling count, S draws.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Negatives:
    """Words drawn for a step; at most S, since a word drawn twice stands here once."""

    words: Tensor  # (S,) int64, ascending, distinct
    log_expected: Tensor  # (S,) float32, log(expected times drawn / times drawn)

    def to(self, device: torch.device | str) -> "Negatives":
        """Copy to where the softmax is."""
        return Negatives(words=self.words.to(device), log_expected=self.log_expected.to(device))


class LogUniformSampler:
    """Draw S of V words, each an exactly known number of times on average.

    Word j's share is log((j + 2) / (j + 1)) / log(V + 1), as in TensorFlow's log-uniform sampler,
    but draws are neither independent nor repeated until they differ. Laid end to end, the shares
    form a line; it is scaled to length S, no word longer than 1, and cut into S pieces of length 1,
    each of which gives one point. So word j is drawn `expected(j)` = min(1, scale * share) times on
    average, frequent words exactly once, and a sum over the draws of f(j) / expected(j) has the
    mean sum(f) over all words, without approximation.
    """

    def __init__(self, *, num_words: int, num_negatives: int) -> None:
        if num_words < 1 or num_negatives < 1:
            raise ValueError(
                f"cannot draw {num_negatives} of {num_words} words; both must be at least 1"
            )
        self.num_words = num_words
        self.num_negatives = min(num_negatives, num_words)
        self.num_certain, self._scale = _find_head(num_words, self.num_negatives)

    def expected(self, words: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how many times each of these words is drawn on average."""
        # The scale is infinite where every word is certain.
        return np.where(
            words < self.num_certain, 1.0, np.minimum(1.0, self._scale * _log_widths(words))
        )

    def draw(self, rng: np.random.Generator) -> Negatives:
        """Draw the words of one step."""
        head = self.num_certain
        num_pieces = self.num_negatives - head
        places = np.arange(num_pieces) + rng.random(num_pieces)
        # The line behind the head up to word j is scale * log((j + 1) / (head + 1)) long.
        tail = np.floor((head + 1) * np.exp(places / self._scale)).astype(np.int64) - 1
        tail = np.clip(tail, head, self.num_words - 1)  # rounding at the ends of the line
        drawn, times = np.unique(tail, return_counts=True)
        log_expected = np.zeros(head + len(drawn), dtype=np.float32)
        log_expected[head:] = np.log(self.expected(drawn) / times)
        return Negatives(
            words=torch.from_numpy(np.concatenate([np.arange(head, dtype=np.int64), drawn])),
            log_expected=torch.from_numpy(log_expected),
        )


def _find_head(num_words: int, num_negatives: int) -> tuple[int, float]:
    """Return how many words are certain to be drawn, and the scale of the others' shares.

    The head is the shortest after which no word is longer than 1.
    """
    if num_negatives == num_words:
        return num_words, np.inf
    heads = np.arange(num_negatives, dtype=np.int64)
    scales = (num_negatives - heads) / np.log((num_words + 1) / (heads + 1))
    head = int(np.argmax(scales * _log_widths(heads) <= 1.0))
    return head, float(scales[head])


def _log_widths(words: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.log1p(1 / (words + 1.0))
