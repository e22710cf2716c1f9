"""Add words to a softmax without changing the probabilities of the old ones.

Before training, the probability of the unknown word is divided among it and the new words,
in proportion to their counts in the new text. So all old words keep their exact probabilities.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from elmore.errors import ModelError
from elmore.model.word_softmax import WordSoftmax
from elmore.text.vocabulary import UNKNOWN_WORD


@torch.no_grad()
def extend_softmax(
    softmax: WordSoftmax, *, words: Sequence[str], counts: NDArray[np.int64]
) -> WordSoftmax:
    """Return a softmax over `words` (the old ones first); `counts` are those of the new text."""
    num_old, unknown = softmax.num_words, words.index(UNKNOWN_WORD)
    extended = WordSoftmax(num_words=len(words), dim=softmax.dim).to(softmax.bias)
    extended.weight[:num_old], extended.bias[:num_old] = softmax.weight, softmax.bias
    if len(words) == num_old:
        return extended
    occurrences = np.maximum(counts[[unknown, *range(num_old, len(words))]], 0.5)
    log_shares = torch.from_numpy(np.log(occurrences / occurrences.sum())).to(softmax.bias)
    extended.weight[num_old:] = softmax.weight[unknown]
    extended.bias[num_old:] = softmax.bias[unknown] + log_shares[1:]
    extended.bias[unknown] += log_shares[0]
    return extended


def check_extension(old: Sequence[str], new: Sequence[str], *, corpus: str) -> None:
    """Raise an error if the vocabulary of a corpus does not start with the model's words."""
    if list(new[: len(old)]) != list(old):
        raise ModelError(
            f"the vocabulary of the corpus {corpus} does not start with the words of the model; "
            "prepare it with --vocabulary MODEL/softmax_words.txt --extend"
        )
