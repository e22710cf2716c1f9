"""Sentence vectors for comparing meanings: frequent words count less, and no direction dominates.

Mean vectors of any two sentences are similar: they share frequent words, and a few directions have
most of the variance. Here a token counts `a / (a + share)`, with the relative frequency of its word
(Arora et al., 2017), and the mean is whitened: after that, all directions have the same variance in
ordinary text (Su et al., 2021). Word order is not considered beyond what is in the vectors.

Shapes: D numbers of the chosen layers, K numbers of a sentence vector.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from elmore.embed.layer_choice import Array
from elmore.errors import DataError
from elmore.weights.similarity_file import MAX_WORDS, Similarity

SMOOTHING = 5e-4
LEAST_SHARE = 0.05
"""Words with a smaller share of `smoothing` than this are not stored: they count in full."""
RIDGE = 0.01
"""Added to every variance, as a share of their mean, so that no noise is blown up."""
LEAST_VARIANCE = 1e-6
"""Directions below this share of the mean variance are dropped: layer 0 has its numbers twice."""
MIN_SENTENCES_PER_DIM = 2


def pool_similarity(tokens: Sequence[str], vectors: Array, similarity: Similarity) -> Array:
    """Reduce the vectors of a sentence, (tokens, D) or (layers, tokens, D / layers), to (K,)."""
    if not tokens:
        return np.zeros(similarity.matrix.shape[1], np.float32)
    weights = weigh_tokens(tokens, similarity.shares, smoothing=similarity.smoothing)
    centered: Array = _average(vectors, weights) - similarity.mean
    return centered @ similarity.matrix


def fit_similarity(
    sentences: Sequence[Sequence[str]],
    vectors: Iterable[Array],
    *,
    layers: str | int | Sequence[int],
    smoothing: float = SMOOTHING,
) -> Similarity:
    """Compute frequencies, mean and whitening from tokenized sentences and their vectors."""
    shares = count_shares(sentences, smoothing=smoothing)
    total: NDArray[np.float64] | None = None
    products: NDArray[np.float64] | None = None
    num_sentences = 0
    for tokens, own in zip(sentences, vectors, strict=True):
        if not tokens:
            continue
        mean = _average(own, weigh_tokens(tokens, shares, smoothing=smoothing)).astype(np.float64)
        if total is None or products is None:
            total, products = np.zeros(len(mean)), np.zeros((len(mean), len(mean)))
        total += mean
        products += np.outer(mean, mean)
        num_sentences += 1
    num_dims = 0 if total is None else len(total)
    if total is None or products is None or num_sentences < MIN_SENTENCES_PER_DIM * num_dims:
        raise DataError(
            f"got {num_sentences:,} sentences with tokens, which is too few for vectors of "
            f"{num_dims:,} numbers; give at least {MIN_SENTENCES_PER_DIM * max(num_dims, 1):,}, "
            "better ten times as many"
        )
    mean = total / num_sentences
    return Similarity(
        layers=layers,
        smoothing=smoothing,
        shares=shares,
        mean=mean.astype(np.float32),
        # In the order of the file, so that products have the same bits after reading.
        matrix=_whiten(products / num_sentences - np.outer(mean, mean)).astype(
            np.float32, order="C"
        ),
        num_sentences=num_sentences,
    )


def weigh_tokens(
    tokens: Sequence[str], shares: Mapping[str, float], *, smoothing: float
) -> NDArray[np.float32]:
    """Return the weight of each token.

    >>> weigh_tokens(["The", "bank"], {"the": 0.03}, smoothing=0.01).tolist()
    [0.25, 1.0]
    """
    weights = [smoothing / (smoothing + shares.get(token.lower(), 0.0)) for token in tokens]
    return np.array(weights, np.float32)


def count_shares(sentences: Iterable[Sequence[str]], *, smoothing: float) -> dict[str, float]:
    """Return the relative frequencies of frequent words in lower case, most frequent first."""
    counts = Counter(token.lower() for tokens in sentences for token in tokens)
    total = counts.total()
    return {
        word: float(f"{count / total:.4g}")
        for word, count in counts.most_common(MAX_WORDS)
        if count / total >= LEAST_SHARE * smoothing
    }


def _average(vectors: Array, weights: NDArray[np.float32]) -> Array:
    """Return the weighted mean over the tokens, several layers one after another: (D,)."""
    return (weights @ vectors / weights.sum()).reshape(-1)


def _whiten(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (D, K): the principal directions, each divided by its standard deviation."""
    variances, directions = np.linalg.eigh(covariance)
    mean = variances.mean()
    is_kept = variances > LEAST_VARIANCE * mean
    kept = variances[is_kept]
    return directions[:, is_kept] / np.sqrt(kept + RIDGE * kept.mean())
