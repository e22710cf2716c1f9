"""Static word vectors in a task network.

Shapes: V words, after two special rows, X numbers of a vector.
"""

import re
from collections import Counter
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from elmore.tasks.inputs.token_batch import NO_TOKEN, NUM_SPECIAL_ROWS
from elmore.text.word_vectors import WordVectors

_SURROGATE = re.compile("[\ud800-\udfff]")


class WordTable(nn.Module):
    """One vector per row; the first `num_trained` rows are trained, the others are fixed.

    An optimizer updates all trained numbers in every step, and most words in a file of word vectors
    do not occur in the training data.
    """

    def __init__(self, vectors: Tensor, *, num_trained: int) -> None:
        super().__init__()
        self.output_dim = int(vectors.shape[1])
        self.trained = nn.Parameter(vectors[:num_trained].clone(), requires_grad=num_trained > 0)
        self.register_buffer("fixed", vectors[num_trained:].clone())
        self.fixed: Tensor

    def forward(self, rows: Tensor) -> Tensor:
        """Look up rows (...) and return (..., X); NO_TOKEN has no gradient."""
        num_trained, num_fixed = len(self.trained), len(self.fixed)
        if not num_fixed:
            return embedding(rows, self.trained, padding_idx=NO_TOKEN)
        if not num_trained:
            return embedding(rows, self.fixed)
        is_trained = rows < num_trained
        # Row 0 is a placeholder for rows of the other table.
        learned = embedding(rows * is_trained, self.trained, padding_idx=NO_TOKEN)
        given = embedding((rows - num_trained).clamp(min=0), self.fixed)
        return torch.where(is_trained.unsqueeze(-1), learned, given)


@dataclass(frozen=True, kw_only=True)
class ChosenWords:
    """The words a task network knows, and their initial vectors."""

    words: list[str]
    vectors: Tensor  # (2 + V, X)
    num_trained: int  # rows, including the special ones


def choose_words(counts: Counter[str], vectors: WordVectors, *, max_words: int) -> ChosenWords:
    """Choose the words of the training data that have vectors, then the first words of the file.

    Tokens are looked up as is or in lowercase, so the words are those of the file.
    """
    found = (vectors.find(token) for token in counts)
    used = {row for row in found if row is not None}
    others = set(range(min(max_words, len(vectors.words)))) - used
    kept = [sorted(row for row in rows if can_keep(vectors.words[row])) for rows in (used, others)]
    rows = [*kept[0], *kept[1]]
    table = torch.zeros(NUM_SPECIAL_ROWS + len(rows), vectors.vector_dim)
    table[NUM_SPECIAL_ROWS:] = torch.from_numpy(vectors.vectors[rows])
    return ChosenWords(
        words=[vectors.words[row] for row in rows],
        vectors=table,
        num_trained=NUM_SPECIAL_ROWS + len(kept[0]),
    )


def learn_words(counts: Counter[str], *, dim: int, min_count: int) -> ChosenWords:
    """Make random vectors for words that are frequent enough; all others share one."""
    frequent = sorted(
        word for word, count in counts.items() if count >= min_count and can_keep(word)
    )
    table = torch.randn(NUM_SPECIAL_ROWS + len(frequent), dim) * 0.1
    table[NO_TOKEN] = 0.0
    return ChosenWords(words=frequent, vectors=table, num_trained=len(table))


def can_keep(word: str) -> bool:
    """Return whether a word can be stored as a line of a file; other words count as unknown.

    A lone surrogate, which JSON may contain, cannot be written.
    """
    return "\n" not in word and not word.endswith("\r") and not _SURROGATE.search(word)
