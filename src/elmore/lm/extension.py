"""Change the words of a softmax without changing the probabilities of the words that stay.

Before training, the probability of the unknown word is divided among it and the new words,
in proportion to their counts in the new text. So all old words keep their exact probabilities. The
probabilities of dropped words are lost.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from elmore.errors import ModelError
from elmore.model.word_softmax import WordSoftmax
from elmore.text.vocabulary import UNKNOWN_WORD


def extend_softmax(
    softmax: WordSoftmax, *, words: Sequence[str], counts: NDArray[np.int64]
) -> WordSoftmax:
    """Return a softmax over `words` (the old ones first); `counts` are those of the new text."""
    old_words = words[: softmax.num_words]
    return change_words(softmax, old_words=old_words, words=words, counts=counts)


@torch.no_grad()
def change_words(
    softmax: WordSoftmax,
    *,
    old_words: Sequence[str],
    words: Sequence[str],
    counts: NDArray[np.int64],
) -> WordSoftmax:
    """Return a softmax over `words` in any order; `counts` are those of the new text."""
    numbers = {word: number for number, word in enumerate(old_words)}
    sources = torch.tensor([numbers.get(word, -1) for word in words])
    unknown = words.index(UNKNOWN_WORD)
    new = (sources < 0).nonzero()[:, 0]
    sources[new] = numbers[UNKNOWN_WORD]
    changed = WordSoftmax(num_words=len(words), dim=softmax.dim).to(softmax.bias)
    changed.weight.copy_(softmax.weight[sources])
    changed.bias.copy_(softmax.bias[sources])
    if len(new):
        sharing = torch.cat([torch.tensor([unknown]), new])
        occurrences = np.maximum(counts[sharing.numpy()], 0.5)
        changed.bias[sharing] += torch.from_numpy(np.log(occurrences / occurrences.sum())).to(
            softmax.bias
        )
    return changed


def check_extension(old: Sequence[str], new: Sequence[str], *, corpus: str) -> None:
    """Raise an error if the vocabulary of a corpus does not start with the model's words."""
    if list(new[: len(old)]) != list(old):
        raise ModelError(
            f"the vocabulary of the corpus {corpus} does not start with the words of the model; "
            "prepare it with --vocabulary MODEL/softmax_words.txt --extend"
        )
