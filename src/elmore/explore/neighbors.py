"""Contexts in which a word is used alike: nearest by the cosine of their vectors."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmore.config import StatePolicy
from elmore.embed.embedder import Embedder
from elmore.embed.layer_choice import Layers
from elmore.errors import DataError

Array = NDArray[np.float32]

# Pairs grow with the square; a word used more often than this is told by its first uses.
MAX_CONTEXTS = 10_000
ROWS_AT_ONCE = 1024


@dataclass(frozen=True, kw_only=True)
class Context:
    """One use of a word."""

    sentence: int  # counted from 0
    position: int
    tokens: list[str]


@dataclass(frozen=True, kw_only=True)
class Neighbor:
    """Two uses of a word, and the cosine of their vectors."""

    similarity: float
    context: Context
    other: Context


def nearest_to(
    embedder: Embedder,
    word: str,
    sentences: Iterable[list[str]],
    *,
    query: list[str],
    top: int = 10,
    layers: Layers | None = None,
) -> list[Neighbor]:
    """Return the uses of `word` most like its first use in the sentence `query`."""
    asked, asked_vectors = collect_contexts(embedder, word, [query], layers=layers)
    if not asked:
        raise DataError(f"the sentence {' '.join(query)!r} does not have the word {word!r} in it")
    contexts, vectors = collect_contexts(embedder, word, sentences, layers=layers)
    similarities = vectors @ asked_vectors[0]
    best = np.argsort(-similarities, kind="stable")[:top]
    return [
        Neighbor(similarity=float(similarities[i]), context=contexts[i], other=asked[0])
        for i in best
    ]


def nearest_pairs(
    embedder: Embedder,
    word: str,
    sentences: Iterable[list[str]],
    *,
    top: int = 10,
    layers: Layers | None = None,
) -> list[Neighbor]:
    """Return each use of `word` with the one most like it, closest pairs first, no pair twice."""
    return pair_contexts(*collect_contexts(embedder, word, sentences, layers=layers), top=top)


def pair_contexts(contexts: Sequence[Context], vectors: Array, *, top: int = 10) -> list[Neighbor]:
    """Return the closest pairs among the uses that `collect_contexts` found; one use has none."""
    closest: dict[tuple[int, int], float] = {}
    for start in range(0, len(contexts), ROWS_AT_ONCE):
        rows = vectors[start : start + ROWS_AT_ONCE] @ vectors.T
        rows[np.arange(len(rows)), start + np.arange(len(rows))] = -np.inf
        for offset, other in enumerate(rows.argmax(axis=1)):
            if np.isfinite(rows[offset, other]):
                pair = (min(start + offset, int(other)), max(start + offset, int(other)))
                closest[pair] = float(rows[offset, other])
    best = sorted(closest.items(), key=lambda item: (-item[1], item[0]))[:top]
    return [
        Neighbor(similarity=similarity, context=contexts[i], other=contexts[j])
        for (i, j), similarity in best
    ]


def collect_contexts(
    embedder: Embedder,
    word: str,
    sentences: Iterable[list[str]],
    *,
    layers: Layers | None = None,
) -> tuple[list[Context], Array]:
    """Find the uses of a word, whatever its case, and their vectors of length 1."""
    if embedder.choose_layers(layers).num_kept is not None:
        raise DataError(
            "neighbors compare one vector per token; choose one layer, 'average' or 'top'"
        )
    wanted = word.casefold()
    contexts: list[Context] = []
    rows: list[Array] = []
    # Carried state depends on all sentences; without it only those with the word need to be run.
    is_alone = embedder.state is StatePolicy.RESET
    kept = _keep(sentences, wanted) if is_alone else enumerate(sentences)
    numbers: list[int] = []

    def numbered() -> Iterator[list[str]]:
        for number, tokens in kept:
            numbers.append(number)
            yield tokens

    place = 0
    for window in embedder.windows(numbered(), layers=layers):
        for tokens, vectors in zip(window.sentences, window.vectors, strict=True):
            for position, token in enumerate(tokens):
                if token.casefold() == wanted and len(contexts) < MAX_CONTEXTS:
                    contexts.append(
                        Context(sentence=numbers[place], position=position, tokens=list(tokens))
                    )
                    rows.append(_normalize(vectors[position]))
            place += 1
        if len(contexts) >= MAX_CONTEXTS:
            break
    empty = np.empty((0, embedder.vector_dim), dtype=np.float32)
    return contexts, np.stack(rows) if rows else empty


def _keep(sentences: Iterable[list[str]], wanted: str) -> Iterator[tuple[int, list[str]]]:
    """Leave out the sentences without the word."""
    for number, tokens in enumerate(sentences):
        if any(token.casefold() == wanted for token in tokens):
            yield number, tokens


def _normalize(vector: Array) -> Array:
    return vector / max(float(np.linalg.norm(vector)), 1e-12)
