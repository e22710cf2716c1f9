"""Find similar uses of a word: those whose vectors have the highest cosine similarity."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmore.config import StatePolicy
from elmore.embed.embedder import Embedder
from elmore.embed.layer_choice import LayerChoice, Layers
from elmore.errors import DataError

Array = NDArray[np.float32]

# The number of pairs grows quadratically, so of a frequent word only the first uses count.
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
    """Return the uses of `word` most similar to its first use in the sentence `query`."""
    use, vector = find_query(embedder, word, query, layers=layers)
    contexts, vectors = collect_contexts(embedder, word, sentences, layers=layers)
    return rank_contexts(contexts, vectors, use=use, vector=vector, top=top)


def find_query(
    embedder: Embedder, word: str, query: list[str], *, layers: Layers | None = None
) -> tuple[Context, Array]:
    """Return the first use of `word` in a sentence, and its vector, scaled to length 1."""
    uses, vectors = collect_contexts(embedder, word, [query], layers=layers)
    if not uses:
        raise DataError(
            f"the sentence {' '.join(query)!r} does not contain the word {word!r}; give one that "
            "does"
        )
    return uses[0], vectors[0]


def rank_contexts(
    contexts: Sequence[Context], vectors: Array, *, use: Context, vector: Array, top: int = 10
) -> list[Neighbor]:
    """Return the uses from `collect_contexts` that are most similar to another one."""
    similarities = vectors @ vector
    best = np.argsort(-similarities, kind="stable")[:top]
    return [
        Neighbor(similarity=float(similarities[i]), context=contexts[i], other=use) for i in best
    ]


def nearest_pairs(
    embedder: Embedder,
    word: str,
    sentences: Iterable[list[str]],
    *,
    top: int = 10,
    layers: Layers | None = None,
) -> list[Neighbor]:
    """Return each use of `word` with its most similar use, closest pairs first, each pair once."""
    return pair_contexts(*collect_contexts(embedder, word, sentences, layers=layers), top=top)


def pair_contexts(contexts: Sequence[Context], vectors: Array, *, top: int = 10) -> list[Neighbor]:
    """Return the closest pairs of the uses from `collect_contexts`; none for a single use."""
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
    """Find the uses of a word, ignoring case, and their vectors, scaled to length 1."""
    refuse_several_layers(embedder.choose_layers(layers))
    folded = word.casefold()
    contexts: list[Context] = []
    rows: list[Array] = []
    # Without carried state, only the sentences with the word have to be embedded.
    is_alone = embedder.state is StatePolicy.RESET
    kept = _keep(sentences, folded) if is_alone else enumerate(sentences)
    numbers: list[int] = []

    def numbered() -> Iterator[list[str]]:
        for number, tokens in kept:
            numbers.append(number)
            yield tokens

    index = 0
    for window in embedder.windows(numbered(), layers=layers):
        for tokens, vectors in zip(window.sentences, window.vectors, strict=True):
            for position, token in enumerate(tokens):
                if token.casefold() == folded and len(contexts) < MAX_CONTEXTS:
                    contexts.append(
                        Context(sentence=numbers[index], position=position, tokens=list(tokens))
                    )
                    rows.append(_normalize(vectors[position]))
            index += 1
        if len(contexts) >= MAX_CONTEXTS:
            break
    empty = np.empty((0, embedder.vector_dim), dtype=np.float32)
    return contexts, np.stack(rows) if rows else empty


def refuse_several_layers(choice: LayerChoice) -> None:
    """Raise an error for a choice of layers that gives several vectors per token."""
    if choice.num_kept is not None:
        raise DataError(
            "neighbors compare one vector per token; choose one layer, 'average' or 'top'"
        )


def _keep(sentences: Iterable[list[str]], folded: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the sentences that have the word, with their numbers."""
    for number, tokens in enumerate(sentences):
        if any(token.casefold() == folded for token in tokens):
            yield number, tokens


def _normalize(vector: Array) -> Array:
    return vector / max(float(np.linalg.norm(vector)), 1e-12)
