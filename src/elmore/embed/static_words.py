"""Static vectors of words: without context, or the mean over the uses of each word in a text.

Shapes: V words, D both directions of one layer.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from elmore.embed.embedder import Embedder
from elmore.embed.layer_choice import Layers
from elmore.errors import ConfigError, DataError
from elmore.text.word_vectors import WordVectors

TOKEN_LAYER = 0


def embed_words(embedder: Embedder, words: Sequence[str]) -> WordVectors:
    """Return the token layer's vector of each word, which depends on its spelling only."""
    distinct = tuple(dict.fromkeys(words))
    if not distinct:
        raise DataError("there are no words; give at least one")
    vectors = np.empty((len(distinct), embedder.vector_dim), dtype=np.float32)
    sentences = ([word] for word in distinct)
    for row, vector in enumerate(embedder.stream(sentences, layers=TOKEN_LAYER)):
        vectors[row] = vector[0]
    return WordVectors(words=distinct, vectors=vectors)


def choose_words(
    sentences: Iterable[Sequence[str]], *, min_count: int = 1, max_words: int | None = None
) -> list[str]:
    """Return the words of a text, most frequent first."""
    counts = Counter(token for tokens in sentences for token in tokens)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [word for word, count in ranked if count >= min_count][:max_words]


def average_uses(
    embedder: Embedder,
    sentences: Iterable[Sequence[str]],
    *,
    words: Sequence[str],
    layers: Layers | None = None,
) -> WordVectors:
    """Return the mean vector over the uses of each word; words that do not occur are left out."""
    if embedder.choose_layers(layers).num_kept is not None:
        raise ConfigError(
            "static vectors are made of one vector per token; choose one layer, 'average' or 'top'"
        )
    rows = {word: row for row, word in enumerate(dict.fromkeys(words))}
    sums = np.zeros((len(rows), embedder.vector_dim))  # float64, for words with a million uses
    counts = np.zeros(len(rows), dtype=np.int64)
    for window in embedder.windows(sentences, layers=layers):
        for tokens, vectors in zip(window.sentences, window.vectors, strict=True):
            found = [(rows[token], at) for at, token in enumerate(tokens) if token in rows]
            if found:
                numbers, positions = map(list, zip(*found, strict=True))
                np.add.at(sums, numbers, vectors[positions])
                np.add.at(counts, numbers, 1)
    used = counts > 0
    if not used.any():
        raise DataError("none of the words occurs in the text; give a text that has them")
    means = sums[used] / counts[used, np.newaxis]
    kept = tuple(word for word, is_used in zip(rows, used, strict=True) if is_used)
    return WordVectors(words=kept, vectors=means.astype(np.float32))
