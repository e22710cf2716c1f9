"""Sentences in, vectors out: the front door to a model.

Shapes: L layers, D both directions of one layer.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from elmore.config import Precision, StatePolicy
from elmore.embed.layer_choice import ALL, AVERAGE, LayerChoice, Layers
from elmore.embed.origin import Origin, move_model
from elmore.embed.vectors import Array, make_cutter, make_empty
from elmore.errors import ConfigError, DataError, ModelError
from elmore.jobs.device import read_device
from elmore.model.packed_bilm import freeze
from elmore.model.state import BiLMState, RowMemory
from elmore.read.engine import Engine
from elmore.read.token_cache import TokenCache
from elmore.read.windows import SentenceWindow, WindowedReading
from elmore.text.language import Language
from elmore.text.tokens import parse_sentence
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.loading import read_source
from elmore.weights.model_source import ModelSource, find_source

Sentence = str | Sequence[str]


class Pool(StrEnum):
    """How the tokens of a sentence become one vector."""

    MEAN = "mean"
    MAX = "max"


def load(
    source: str | Path | None = None,
    *,
    options: str | Path | None = None,
    token_embeddings: str | Path | None = None,
    vocabulary: str | Path | None = None,
    revision: str | None = None,
    state: StatePolicy | str = StatePolicy.RESET,
    mix: Layers = AVERAGE,
    device: str | torch.device = "cpu",
    language: Language | str = Language.EN,
    tokens_per_batch: int = 2048,
    cache_size: int = 30_000,
    max_sentence_tokens: int = 10_000,
    precision: Precision | str = Precision.F32,
) -> "Embedder":
    """Load any published or own model, ready to embed; see `load_model` and `Embedder`.

    Where a native kernel computes, its copy of the weights is the only one that stays: the
    embedder's model can be asked about, but not saved or trained. `load_model` gives one that can.
    """
    place = read_device(device)
    found = find_source(
        source,
        options=options,
        token_embeddings=token_embeddings,
        vocabulary=vocabulary,
        revision=revision,
    )
    embedder = Embedder(
        move_model(read_source(found), place),
        state=state,
        mix=mix,
        language=language,
        tokens_per_batch=tokens_per_batch,
        cache_size=cache_size,
        max_sentence_tokens=max_sentence_tokens,
        precision=precision,
    )
    embedder._release_weights(found)
    return embedder


class Embedder:
    """Give every token of a sentence its vector in context.

    A sentence is a string, which is split into tokens, or a list of tokens, which is taken as it
    is. `tokens_per_batch` bounds memory and `cache_size` the context-free vectors kept; neither
    changes a result. Under policy `reset` a vector depends on its sentence alone, to the bit.
    `precision` is that of the weights: `bf16` and `int8` take a half and a quarter of the memory,
    and give vectors that differ by about 0.4 % and 2 %.

    A loaded embedder is pickled as the path of its model and its settings; unpickling it checks
    that the model is still the same. An embedder of a model in memory is pickled with the model's
    weights.
    """

    def __init__(
        self,
        model: ElmoModel,
        *,
        state: StatePolicy | str = StatePolicy.RESET,
        mix: Layers = AVERAGE,
        language: Language | str = Language.EN,
        tokens_per_batch: int = 2048,
        cache_size: int = 30_000,
        max_sentence_tokens: int = 10_000,
        precision: Precision | str = Precision.F32,
    ) -> None:
        model.require_weights()
        if state not in list(StatePolicy):
            raise ConfigError(f"state is {state!r}; choose one of: {', '.join(StatePolicy)}")
        if language not in list(Language):
            raise ConfigError(f"language is {language!r}; choose one of: {', '.join(Language)}")
        if precision not in list(Precision):
            raise ConfigError(f"precision is {precision!r}; choose one of: {', '.join(Precision)}")
        _check_size("tokens_per_batch", tokens_per_batch, least=1)
        _check_size("max_sentence_tokens", max_sentence_tokens, least=1)
        _check_size("cache_size", cache_size, least=0)
        self.model = model.eval()
        self.state = StatePolicy(state)
        self.language = Language(language)
        self.mix = mix
        self.precision = Precision(precision)
        self.choose_layers(mix)  # a wrong choice is reported here, not at the first sentence
        self.max_sentence_tokens = max_sentence_tokens
        self._bilm = freeze(model.bilm, precision=self.precision)
        self._engine = Engine(
            self._bilm,
            TokenCache(self._bilm, model.speller, size=cache_size),
            tokens_per_batch=tokens_per_batch,
            num_parallel=max(1, torch.get_num_threads() // 2),  # a direction is a thread
        )
        self._memory = RowMemory()
        self._origin: Origin | None = None  # None: a model in memory

    def __getstate__(self) -> dict[str, Any]:
        """Pickle how to make the embedder; what kernels and caches hold is made again."""
        origin = self._origin
        if origin is not None and origin.fingerprint != self.model.fingerprint():
            origin = None  # the weights were changed after loading
        if origin is None and self.model.is_released:
            raise ModelError(
                "this embedder cannot be pickled, because its model gave up its weights; make the "
                "embedder with elmore.load, which knows where they came from"
            )
        return {
            "origin": origin,
            "model": self.model if origin is None else None,
            "device": "cpu" if self.model.is_released else str(self.model.bilm.initial_cell.device),
            "settings": {
                "state": self.state,
                "mix": self.mix,
                "language": self.language,
                "tokens_per_batch": self._engine.tokens_per_batch,
                "cache_size": self._engine.cache.size,
                "max_sentence_tokens": self.max_sentence_tokens,
                "precision": self.precision,
            },
            "memory": self._memory,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        origin: Origin | None = state["origin"]
        model = state["model"]
        if origin is not None:
            model = move_model(origin.read_again(), state["device"])
        Embedder.__init__(self, model, **state["settings"])
        self._memory = state["memory"]
        if origin is not None:
            self._release_weights(origin.source)

    def __copy__(self) -> Self:
        """Share the model and the cache."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy the packed weights as well, which needs no files."""
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return copied

    def _release_weights(self, source: ModelSource) -> None:
        """Give up weights that were packed, and that can be loaded again."""
        if self.has_own_weights:
            self.model.release_weights()
        self._origin = Origin(source=source, fingerprint=self.model.fingerprint())

    @property
    def num_layers(self) -> int:
        """The LSTM layers, and the tokens below them."""
        return self.model.bilm.num_layers

    @property
    def vector_dim(self) -> int:
        """Width of a vector: both directions."""
        return self.model.bilm.output_dim

    @property
    def kernel(self) -> str:
        """What computes: avx2, avx512 or another native kernel, or torch."""
        return self._bilm.kernel_name

    @property
    def has_own_weights(self) -> bool:
        """Whether it computes with a copy of the model's weights."""
        return self._bilm is not self.model.bilm

    def initial_state(self, num_sentences: int) -> BiLMState:
        """Return the state in which sentences begin."""
        return self._engine.initial_state(num_sentences)

    def choose_layers(self, mix: Layers | None = None) -> LayerChoice:
        """Return what a mix means for this model; without one, the embedder's own."""
        return LayerChoice(self.mix if mix is None else mix, num_layers=self.num_layers)

    def embed(
        self, sentences: Iterable[Sentence], *, mix: Layers | None = None, rows: int | None = None
    ) -> list[Array]:
        """Return one (tokens, D) array per sentence, in the order given.

        `mix` is average, top, all, a layer's number or a `ScalarMix`: a trained one, or a weighted
        sum of layers, `ScalarMix.from_weights([0.2, 0.3, 0.5])`.
        Under policy `stream` a call is one batch whose sentence k continues row k; with `rows`
        the sentences are successive batches of that many.
        """
        parsed = [self.parse(sentence) for sentence in _refuse_string(sentences)]
        windows = self._windows(parsed, mix=mix, rows=max(len(parsed), 1) if rows is None else rows)
        return [vectors for window in windows for vectors in window.vectors]

    def layers(self, sentences: Iterable[Sentence], *, rows: int | None = None) -> list[Array]:
        """Return one (L, tokens, D) array a sentence: the tokens, then each LSTM layer."""
        return self.embed(sentences, mix=ALL, rows=rows)

    def stream(
        self, sentences: Iterable[Sentence], *, mix: Layers | None = None, rows: int = 1
    ) -> Iterator[Array]:
        """Yield arrays as `embed` returns them, reading the input as it goes."""
        parsed = (self.parse(sentence) for sentence in _refuse_string(sentences))
        windows = self._windows(parsed, mix=mix, rows=rows)
        return (vectors for window in windows for vectors in window.vectors)

    def sentence_vectors(
        self, sentences: Iterable[Sentence], *, pool: Pool | str = Pool.MEAN
    ) -> Array:
        """Return (sentences, D): the mean or maximum over each one's tokens, zeros if none."""
        if pool not in list(Pool):
            raise ConfigError(f"pool is {pool!r}; choose one of: {', '.join(Pool)}")
        parsed = [self.parse(sentence) for sentence in _refuse_string(sentences)]
        windows = self._windows(parsed, mix=None, rows=max(len(parsed), 1))
        pooled = [_pool(vectors, Pool(pool)) for window in windows for vectors in window.vectors]
        return np.stack(pooled) if pooled else np.empty((0, self.vector_dim), dtype=np.float32)

    def reset_state(self) -> None:
        """Begin anew under policy `stream`."""
        self._memory.forget()

    def clear_cache(self) -> None:
        """Encode all tokens anew, with the model's weights as they are now."""
        if self.has_own_weights and not self.model.is_released:
            self._bilm = freeze(self.model.bilm, precision=self.precision)
            self._engine.reader = self._engine.cache.reader = self._bilm
        self._engine.cache.clear()

    def windows(
        self,
        sentences: Iterable[Sequence[str]],
        *,
        mix: Layers | None = None,
        rows: int = 1,
        state: BiLMState | None = None,
        num_before: int = 0,
    ) -> Iterator[SentenceWindow[Array]]:
        """Embed tokenised sentences window by window, going on from `state` if given.

        For jobs that keep their own account of the state; this embedder's is not touched.
        `num_before` sentences came earlier: a message counts them.
        """
        choice = self.choose_layers(mix)
        reading = WindowedReading(
            self._engine,
            make_cutter(choice),
            empty=make_empty(choice, self._bilm),
            policy=self.state,
            max_sentence_tokens=self.max_sentence_tokens,
        )
        return reading.read(sentences, rows=rows, state=state, num_before=num_before)

    def _windows(
        self, sentences: Iterable[Sequence[str]], *, mix: Layers | None, rows: int
    ) -> Iterator[SentenceWindow[Array]]:
        """Under policy `stream`, go on where the last call left each row."""
        if self.state is not StatePolicy.STREAM:
            yield from self.windows(sentences, mix=mix, rows=rows)
            return
        carried = self._memory.recall(self.initial_state(rows))
        for window in self.windows(sentences, mix=mix, rows=rows, state=carried):
            if window.state is not None:
                self._memory.keep(window.state)
            yield window

    def parse(self, sentence: Sentence) -> list[str]:
        """Return the tokens of a sentence; a list of tokens is taken as it is."""
        return parse_sentence(sentence, language=self.language)


def _check_size(name: str, size: int, *, least: int) -> None:
    if not isinstance(size, int) or size < least:
        raise ConfigError(f"{name} is {size!r}; give a whole number from {least}")


def _refuse_string(sentences: Iterable[Sentence]) -> Iterable[Sentence]:
    if isinstance(sentences, str | bytes):
        raise DataError("got one string where a list of sentences was wanted; give [sentence]")
    return sentences


def _pool(vectors: Array, pool: Pool) -> Array:
    """Reduce (tokens, D) to (D,)."""
    if vectors.ndim != 2:
        raise ConfigError("sentence vectors need one vector a token; choose a mix other than 'all'")
    if len(vectors) == 0:
        return np.zeros(vectors.shape[1], dtype=np.float32)
    match pool:
        case Pool.MEAN:
            return vectors.mean(axis=0)
        case Pool.MAX:
            return vectors.max(axis=0)
