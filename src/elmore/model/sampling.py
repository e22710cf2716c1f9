"""Draw negatives for a sampled softmax: frequent words always, rare ones by rank.

Shapes: V words by descending count, S draws.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Negatives:
    """The distinct words drawn for a step; at most S."""

    words: Tensor  # (S,) int64, ascending, distinct
    log_expected: Tensor  # (S,) float32, log(expected times drawn / times drawn)

    def to(self, device: torch.device | str) -> "Negatives":
        """Copy to a device."""
        return Negatives(words=self.words.to(device), log_expected=self.log_expected.to(device))


class LogUniformSampler:
    """Draw S of V words by systematic sampling, with exactly known expected counts.

    Word j's share is log((j + 2) / (j + 1)) / log(V + 1), as in TensorFlow's log-uniform sampler.
    But draws are not independent, and not repeated until they differ. Instead, the shares are laid
    end to end on a line, which is scaled to length S (with at most 1 per word) and cut into S
    pieces of length 1. One point is drawn in each piece. So word j is drawn `expected(j)` =
    min(1, scale * share) times on average, frequent words exactly once, and a sum over the draws
    of f(j) / expected(j) has exactly the expectation sum(f) over all words.
    """

    def __init__(self, *, num_words: int, num_negatives: int) -> None:
        if num_words < 1 or num_negatives < 1:
            raise ValueError(
                f"cannot draw {num_negatives} of {num_words} words; both numbers must be at least 1"
            )
        self.num_words = num_words
        self.num_negatives = min(num_negatives, num_words)
        self.num_certain, self._scale = _find_head(num_words, self.num_negatives)

    def expected(self, words: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the expected number of draws of each word."""
        # The scale is infinite if every word is certain.
        return np.where(
            words < self.num_certain, 1.0, np.minimum(1.0, self._scale * _log_widths(words))
        )

    def draw(self, rng: np.random.Generator) -> Negatives:
        """Draw the words of one step."""
        head = self.num_certain
        num_pieces = self.num_negatives - head
        points = np.arange(num_pieces) + rng.random(num_pieces)
        # From the head to word j, the line has length scale * log((j + 1) / (head + 1)).
        tail = np.floor((head + 1) * np.exp(points / self._scale)).astype(np.int64) - 1
        tail = np.clip(tail, head, self.num_words - 1)  # against rounding at the ends of the line
        drawn, times = np.unique(tail, return_counts=True)
        log_expected = np.zeros(head + len(drawn), dtype=np.float32)
        log_expected[head:] = np.log(self.expected(drawn) / times)
        return Negatives(
            words=torch.from_numpy(np.concatenate([np.arange(head, dtype=np.int64), drawn])),
            log_expected=torch.from_numpy(log_expected),
        )


def _find_head(num_words: int, num_negatives: int) -> tuple[int, float]:
    """Return the number of words that are always drawn, and the scale of the other shares.

    It is the smallest number for which no other word is longer than 1 on the line.
    """
    if num_negatives == num_words:
        return num_words, np.inf
    heads = np.arange(num_negatives, dtype=np.int64)
    scales = (num_negatives - heads) / np.log((num_words + 1) / (heads + 1))
    head = int(np.argmax(scales * _log_widths(heads) <= 1.0))
    return head, float(scales[head])


def _log_widths(words: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.log1p(1 / (words + 1.0))
