"""What a vector file keeps of a text: every token, some words, or one vector per text unit."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmore.embed.layer_choice import Array, Layers
from elmore.embed.pooling import Pool, pool_sentence
from elmore.embed.projection import Projection
from elmore.embed.unit import Unit
from elmore.embed.vector_file import SentenceVectors
from elmore.errors import ConfigError, DataError
from elmore.settings import read_choice
from elmore.text.vocabulary import read_entries
from elmore.weights.similarity_file import Similarity


@dataclass(frozen=True, kw_only=True)
class OutputChoice:
    """What to keep; by default all tokens with all their dimensions."""

    pool: Pool | None = None
    per: Unit = Unit.SENTENCE
    words: frozenset[str] | None = None
    projection: Projection | None = None
    similarity: Similarity | None = None  # for Pool.SIMILARITY

    @property
    def pools_documents(self) -> bool:
        """Whether a document has one vector."""
        return self.pool is not None and self.per is Unit.DOCUMENT

    def find_layers(self, layers: Layers | None) -> Layers | None:
        """Return the layers to read: those of a call, or those of the similarity."""
        return layers if self.similarity is None else self.similarity.layers

    def find_kept(self, tokens: Sequence[str]) -> list[int]:
        """Return the positions of the tokens whose vectors are kept."""
        if self.words is None:
            return list(range(len(tokens)))
        return [position for position, token in enumerate(tokens) if token in self.words]

    @property
    def words_hash(self) -> str | None:
        """The SHA-256 of the words; their order does not matter."""
        if self.words is None:
            return None
        listed = "\n".join(sorted(self.words)).encode("utf-8", "surrogatepass")
        return hashlib.sha256(listed).hexdigest()


def read_output_choice(
    *,
    pool: Pool | str | None = None,
    per: Unit | str = Unit.SENTENCE,
    words: str | Path | Iterable[str] | None = None,
    projection: Projection | None = None,
    similarity: Similarity | None = None,
) -> OutputChoice:
    """Check what a user wants to keep."""
    how = None if pool is None else Pool(read_choice("pool", pool, Pool))
    unit = Unit(read_choice("per", per, Unit))
    if unit is Unit.DOCUMENT and how not in (Pool.MEAN, Pool.MAX):
        raise ConfigError(
            f"per is document and pool is {how and str(how)!r}; documents can be pooled by mean or "
            "max: give pool mean or max"
        )
    if words is not None and how is not None:
        raise ConfigError(
            "words keeps the vectors of some tokens, and pool makes one vector of all tokens; give "
            "one of them"
        )
    return OutputChoice(
        pool=how,
        per=unit,
        words=None if words is None else _read_words(words),
        projection=projection,
        similarity=similarity,
    )


def _read_words(words: str | Path | Iterable[str]) -> frozenset[str]:
    listed = read_entries(Path(words)) if isinstance(words, str | Path) else list(words)
    found = frozenset(word for word in listed if isinstance(word, str) and word)
    if not found:
        raise DataError(f"words is {words!r:.60}, which has no words; give one word per line")
    return found


class Reducer:
    """Turns the vectors of consecutive sentences into what is stored."""

    def __init__(self, choice: OutputChoice) -> None:
        self._choice = choice
        self._document: _OpenDocument | None = None

    def reduce(self, tokens: Sequence[str], vectors: Array) -> list[SentenceVectors]:
        """Return what can be stored after this sentence: nothing, or one entry."""
        choice = self._choice
        if choice.pools_documents:
            if not tokens:  # which ends a document
                return self.finish()
            self._document = self._document or _OpenDocument()
            self._document.add(tokens, vectors)
            return []
        if choice.pool is not None:
            pooled = pool_sentence(tokens, vectors, choice.pool, similarity=choice.similarity)
            return [self._store([" ".join(tokens)], pooled)]
        if choice.words is None:
            return [self._store(list(tokens), vectors)]
        kept = choice.find_kept(tokens)
        if not kept:
            return []
        return [self._store([tokens[position] for position in kept], vectors[..., kept, :])]

    def finish(self) -> list[SentenceVectors]:
        """Return the document that has ended, if any."""
        if self._document is None:
            return []
        document, self._document = self._document, None
        assert self._choice.pool is not None
        return [self._store([" ".join(document.tokens)], document.pool(self._choice.pool))]

    def _store(self, tokens: list[str], vectors: Array) -> SentenceVectors:
        project = self._choice.projection
        return SentenceVectors(
            tokens=tokens, vectors=vectors if project is None else project(vectors)
        )


class _OpenDocument:
    """The sums and maxima of the sentences so far.

    Sums are in double precision, sentence by sentence, so they do not depend on batches.
    """

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self._sums = np.zeros((), np.float64)
        self._maxima: Array | None = None

    def add(self, tokens: Sequence[str], vectors: Array) -> None:
        self.tokens += tokens
        self._sums = self._sums + vectors.sum(axis=-2, keepdims=True, dtype=np.float64)
        maxima = vectors.max(axis=-2, keepdims=True)
        self._maxima = maxima if self._maxima is None else np.maximum(self._maxima, maxima)

    def pool(self, how: Pool) -> Array:
        """Return (1, D) or (layers, 1, D)."""
        if how is Pool.MEAN:
            return (self._sums / len(self.tokens)).astype(np.float32)
        assert self._maxima is not None
        return self._maxima
