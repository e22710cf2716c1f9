"""Sentences in, vectors out: the front door to a model.

Shapes: L layers, D both directions of one layer.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path

import numpy as np
import torch

from elmore.config import Precision, StatePolicy
from elmore.device import read_device
from elmore.embed.layer_choice import ALL, AVERAGE, LayerChoice, Layers
from elmore.embed.runner import Array, Runner, Window
from elmore.embed.token_cache import TokenCache
from elmore.errors import ConfigError, DataError
from elmore.model.packed_bilm import freeze
from elmore.model.state import BiLMState, RowMemory
from elmore.text.language import Language
from elmore.text.tokens import parse_sentence
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.loading import load_model

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
    model = load_model(
        source,
        options=options,
        token_embeddings=token_embeddings,
        vocabulary=vocabulary,
        revision=revision,
    )
    try:
        model = model.to(place)
    except RuntimeError as error:  # its memory is full
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"the model cannot be put on device {str(device)!r} ({reason:.200}); use cpu"
        ) from error
    embedder = Embedder(
        model,
        state=state,
        mix=mix,
        language=language,
        tokens_per_batch=tokens_per_batch,
        cache_size=cache_size,
        max_sentence_tokens=max_sentence_tokens,
        precision=precision,
    )
    if embedder.has_own_weights:
        model.release_weights()
    return embedder


class Embedder:
    """Give every token of a sentence its vector in context.

    A sentence is a string, which is split into tokens, or a list of tokens, which is taken as it
    is. `tokens_per_batch` bounds memory and `cache_size` the context-free vectors kept; neither
    changes a result. Under policy `reset` a vector depends on its sentence alone, to the bit.
    `precision` is that of the weights: `bf16` and `int8` take a half and a quarter of the memory,
    and give vectors that differ by about 0.4 % and 2 %.
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
        bilm = freeze(model.bilm, precision=self.precision)
        self._runner = Runner(
            bilm,
            TokenCache(bilm.token_encoder, model.speller, size=cache_size),
            policy=self.state,
            tokens_per_batch=tokens_per_batch,
            max_sentence_tokens=max_sentence_tokens,
            num_parallel=max(1, torch.get_num_threads() // 2),  # a direction is a thread
        )
        self._memory = RowMemory()

    @property
    def num_layers(self) -> int:
        """The LSTM layers, and the tokens below them."""
        return self.model.bilm.num_layers

    @property
    def vector_dim(self) -> int:
        """Width of a vector: both directions."""
        return self.model.bilm.output_dim

    @property
    def has_own_weights(self) -> bool:
        """Whether it computes with a copy of the model's weights."""
        return self._runner.bilm is not self.model.bilm

    def initial_state(self, num_sentences: int) -> BiLMState:
        """Return the state in which sentences begin."""
        return self._runner.bilm.initial_state(num_sentences)

    def choose_layers(self, mix: Layers | None = None) -> LayerChoice:
        """Return what a mix means for this model; without one, the embedder's own."""
        return LayerChoice(self.mix if mix is None else mix, num_layers=self.num_layers)

    def embed(
        self, sentences: Iterable[Sentence], *, mix: Layers | None = None, rows: int | None = None
    ) -> list[Array]:
        """Return one (tokens, D) array a sentence, in the order given.

        `mix` is average, top, a layer's number, a trained `ScalarMix` or weights for one.
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
            bilm = freeze(self.model.bilm, precision=self.precision)
            self._runner.bilm, self._runner.cache.encoder = bilm, bilm.token_encoder
        self._runner.cache.clear()

    def windows(
        self,
        sentences: Iterable[Sequence[str]],
        *,
        mix: Layers | None = None,
        rows: int = 1,
        state: BiLMState | None = None,
        num_before: int = 0,
    ) -> Iterator[Window]:
        """Embed tokenised sentences window by window, going on from `state` if given.

        For jobs that keep their own account of the state; this embedder's is not touched.
        `num_before` sentences came earlier: a message counts them.
        """
        return self._runner.windows(
            sentences, self.choose_layers(mix), rows=rows, state=state, num_before=num_before
        )

    def _windows(
        self, sentences: Iterable[Sequence[str]], *, mix: Layers | None, rows: int
    ) -> Iterator[Window]:
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
