"""Sentences in, vectors out: the main interface to a model.

Shapes: L layers, D both directions of one layer.
"""

import copy
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
import torch

from elmore.arguments import explain_calls
from elmore.config import WEIGHTS_IN_MEMORY, Precision, StatePolicy, read_precision
from elmore.embed.layer_choice import AVERAGE, Array, LayerChoice, Layers, Output
from elmore.embed.model_origin import ModelOrigin
from elmore.embed.other_names import OTHER_ARGUMENTS, ExplainsNames, explain_name
from elmore.embed.pooling import Pool, pool_sentence
from elmore.embed.progress import show_progress
from elmore.embed.similarity import SMOOTHING, fit_similarity
from elmore.errors import ConfigError, ModelError
from elmore.jobs.device import move_model, read_device
from elmore.jobs.freed_memory import return_freed_memory
from elmore.model.packed_bilm import freeze
from elmore.model.state import BiLMState, RowMemory
from elmore.read.engine import Engine
from elmore.read.token_cache import TokenCache
from elmore.read.windows import SentenceWindow, WindowedReading
from elmore.settings import check_number, check_positive, check_range, read_choice
from elmore.text.inputs import check_sentences
from elmore.text.language import Language
from elmore.text.offsets import find_offsets
from elmore.text.tokens import parse_sentence
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.loading import ModelSource, find_source, open_model
from elmore.weights.similarity_file import Similarity
from elmore.weights.unread_weights import UnreadWeights

if TYPE_CHECKING:
    from elmore.embed.arrow_embedder import ArrowEmbedder
    from elmore.lm.language_model import LanguageModel
    from elmore.lm.scoring import GapFilling

Sentence = str | Sequence[str]


@explain_calls(OTHER_ARGUMENTS)
def load(
    source: str | Path | None = None,
    *,
    options: str | Path | None = None,
    token_embeddings: str | Path | None = None,
    vocabulary: str | Path | None = None,
    softmax: str | Path | None = None,
    revision: str | None = None,
    state: StatePolicy | str = StatePolicy.RESET,
    layers: Layers = AVERAGE,
    device: str | torch.device = "cpu",
    language: Language | str = Language.EN,
    tokens_per_batch: int = 2048,
    batch_size: int | None = None,
    cache_size: int = 30_000,
    max_sentence_tokens: int = 10_000,
    precision: Precision | str = Precision.F32,
) -> "Embedder":
    """Load any published model or your own; without a source, the model shipped with elmore.

    `source` is a model folder, bilm-tf weights (.hdf5, with `options` unless options.json is next
    to them), a TensorFlow checkpoint of bilm-tf, an ELMoForManyLangs folder, a published archive
    (.zip, .tar.gz, .tar.bz2) or a Hugging Face hub id (with `revision`). To predict words, a
    checkpoint needs its `vocabulary`; `softmax` joins a checkpoint's softmax to HDF5 weights. The
    other arguments are those of `Embedder`.
    """
    checked_device = read_device(device)
    found = find_source(
        source,
        options=options,
        token_embeddings=token_embeddings,
        vocabulary=vocabulary,
        softmax=softmax,
        revision=revision,
    )
    with open_model(found) as model:
        if checked_device.type != "cpu":
            move_model(model, checked_device)
        embedder = Embedder(
            model,
            state=state,
            layers=layers,
            language=language,
            tokens_per_batch=tokens_per_batch,
            batch_size=batch_size,
            cache_size=cache_size,
            max_sentence_tokens=max_sentence_tokens,
            precision=precision,
        )
        embedder._release_weights(found)
    return_freed_memory()
    return embedder


def _take_frugally(weights: UnreadWeights, name: str) -> torch.Tensor:
    return_freed_memory()  # of the last weight, which is packed by now
    return weights.take(name)


class Embedder(metaclass=ExplainsNames):
    """Computes contextual vectors, one per token.

    A sentence is a string, which is split into tokens, or a list of tokens, which is used as is.
    A batch has at most `tokens_per_batch` tokens, markers included, and `batch_size` sentences;
    both bound memory. `cache_size` is the number of cached context-free vectors. None of the three
    changes results. Under policy `reset`, vectors depend only on their sentence, to the
    bit. `precision` is that of the weights: `bf16` and `int8` need a half and a quarter of the
    memory, and their vectors are about 0.4 % and 2 % off.

    A loaded embedder is pickled as the path of its model and its settings; unpickling it checks
    that the model is still the same. An embedder of a model in memory is pickled with the model's
    weights.
    """

    def __init__(
        self,
        model: ElmoModel,
        *,
        state: StatePolicy | str = StatePolicy.RESET,
        layers: Layers = AVERAGE,
        language: Language | str = Language.EN,
        tokens_per_batch: int = 2048,
        batch_size: int | None = None,
        cache_size: int = 30_000,
        max_sentence_tokens: int = 10_000,
        precision: Precision | str = Precision.F32,
    ) -> None:
        if not isinstance(model, ElmoModel):
            raise ModelError(
                f"got {model!r:.60} where a model was expected; load it with elmore.load, which "
                "returns an embedder"
            )
        if model.unread is None:
            model.require_weights()
        check_range("max_sentence_tokens", max_sentence_tokens, 1, sys.maxsize)
        check_range("cache_size", cache_size, 0, sys.maxsize)
        self._origin = ModelOrigin(model.eval())
        self.state = StatePolicy(read_choice("state", state, StatePolicy))
        self.language = Language(read_choice("language", language, Language))
        self.layers = layers
        self.precision = read_precision("precision", precision, WEIGHTS_IN_MEMORY)
        self.choose_layers(layers)  # report an invalid choice now, not at the first sentence
        self.max_sentence_tokens = max_sentence_tokens
        self._bilm = freeze(
            model.bilm,
            precision=self.precision,
            take=None if model.unread is None else partial(_take_frugally, model.unread),
        )
        self._engine = Engine(
            self._bilm,
            TokenCache(self._bilm, model.speller, size=cache_size),
            tokens_per_batch=tokens_per_batch,
            batch_size=batch_size,
            num_parallel=max(1, torch.get_num_threads() // 2),  # one thread per direction
        )
        self._memory = RowMemory()
        self._similarity: Similarity | None = None  # of `fit_similarity`

    def __getstate__(self) -> dict[str, Any]:
        """Return what is needed to rebuild the embedder; packed weights and caches are left out."""
        source = None if self._origin.is_changed else self._origin.source
        if source is None and self.model.is_released:
            raise ModelError(
                "this embedder cannot be pickled, because its model has released its weights; make "
                "the embedder with elmore.load, which records where they came from"
            )
        return {
            "source": source,
            "model": self.model if source is None else None,
            "device": "cpu" if self.model.is_released else str(self.model.bilm.initial_cell.device),
            "settings": {
                "state": self.state,
                "layers": self.layers,
                "language": self.language,
                "tokens_per_batch": self._engine.tokens_per_batch,
                "batch_size": self._engine.batch_size,
                "cache_size": self._engine.cache.size,
                "max_sentence_tokens": self.max_sentence_tokens,
                "precision": self.precision,
            },
            "memory": self._memory,
            # With a source, what is stored there is read again.
            "similarity": self._similarity or (self._origin.similarity if source is None else None),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        source: ModelSource | None = state["source"]
        model = state["model"]
        if source is not None:
            model = move_model(source.read_again(), state["device"])
        Embedder.__init__(self, model, **state["settings"])
        self._memory = state["memory"]
        self._similarity = state["similarity"]
        if source is not None:
            self._release_weights(source)

    def __copy__(self) -> Self:
        """Return a copy that shares the model and the cache."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return an independent copy, with its own packed weights; this reads no files."""
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return copied

    def _release_weights(self, source: ModelSource) -> None:
        """Release weights that were packed and can be loaded again."""
        loaded = replace(source, fingerprint=self.model.fingerprint())
        if self.has_own_weights:
            self.model.release_weights()
        else:
            self.model.keep_weights()
        self._origin = ModelOrigin(self.model, loaded)

    @property
    def model(self) -> ElmoModel:
        """The model; without its weights, if they were packed and released."""
        return self._origin.model

    @property
    def num_layers(self) -> int:
        """The number of LSTM layers plus one for the token layer."""
        return self.model.bilm.num_layers

    @property
    def vector_dim(self) -> int:
        """Width of a vector: both directions."""
        return self.model.bilm.output_dim

    @property
    def kernel(self) -> str:
        """The kernel in use: avx2, avx512 or another native kernel, or torch."""
        return self._bilm.kernel_name

    @property
    def has_own_weights(self) -> bool:
        """Whether it uses its own packed copy of the model's weights."""
        return self._bilm is not self.model.bilm

    def find_model_folder(self) -> Path | None:
        """Return the folder of elmore that the model was loaded from; None for any other model."""
        return self._origin.find_folder()

    def find_model_file(self, name: str) -> Path | None:
        """Return a file that is stored with the model, if there is one of this name."""
        return self._origin.find_file(name)

    def initial_state(self, num_sentences: int) -> BiLMState:
        """Return the state that sentences start from."""
        return self._engine.initial_state(num_sentences)

    def choose_layers(self, layers: Layers | None = None) -> LayerChoice:
        """Return the choice of layers for this model; by default the embedder's own."""
        chosen = self.layers if layers is None else layers
        return LayerChoice(chosen, num_layers=self.num_layers)

    @explain_calls(OTHER_ARGUMENTS)
    def embed(
        self,
        sentences: str | Iterable[Sentence],
        *,
        layers: Layers | None = None,
        tokenized: bool = False,
        output: Output | str = Output.NUMPY,
        progress: bool = False,
        batch_size: int | None = None,
        tokens_per_batch: int | None = None,
        rows: int | None = None,
    ) -> Any:
        """Return one (tokens, D) array per sentence, in input order.

        A string is one sentence and gives one array. A list holds sentences: strings, which are
        split into tokens, or lists of tokens, which are used as is. With `tokenized`, strings are
        split at spaces only, and a list of strings is the tokens of one sentence.

        `layers` is "average", "top", a layer number or a `ScalarMix`; "all" and a list of layer
        numbers give (layers, tokens, D) arrays. `output="torch"` gives tensors on the model's
        device. `progress` shows a progress bar, in notebooks too.

        `batch_size` is the maximum number of sentences per batch and `tokens_per_batch` that of
        tokens; by default, those of the embedder. Neither changes results.

        Under state policy `stream`, a call is one batch, and its sentence k continues row k; with
        `rows`, the sentences are consecutive batches of that size.
        """
        parsed, is_single = self._parse_input(sentences, tokenized=tokenized)
        found: list[Any] = []
        windows = self._windows(
            parsed,
            layers=layers,
            rows=max(len(parsed), 1) if rows is None else rows,
            output=Output(read_choice("output", output, Output)),
            batch_size=batch_size,
            tokens_per_batch=tokens_per_batch,
        )
        with show_progress(len(parsed), is_shown=progress) as advance:
            for window in windows:
                found.extend(window.vectors)
                advance(len(window.vectors))
        return found[0] if is_single else found

    __call__ = embed

    @explain_calls(OTHER_ARGUMENTS)
    def stream(
        self,
        sentences: Iterable[Sentence],
        *,
        layers: Layers | None = None,
        batch_size: int | None = None,
        tokens_per_batch: int | None = None,
        rows: int = 1,
    ) -> Iterator[Array]:
        """Yield the arrays that `embed` would return, reading the input a few batches ahead."""
        parsed = (self._parse(sentence) for sentence in check_sentences(sentences))
        windows = self._windows(
            parsed,
            layers=layers,
            rows=rows,
            batch_size=batch_size,
            tokens_per_batch=tokens_per_batch,
        )
        return (vectors for window in windows for vectors in window.vectors)

    @explain_calls(OTHER_ARGUMENTS)
    def sentence_vectors(
        self,
        sentences: str | Iterable[Sentence],
        *,
        pool: Pool | str = Pool.MEAN,
        layers: Layers | None = None,
        tokenized: bool = False,
        output: Output | str = Output.NUMPY,
        progress: bool = False,
        batch_size: int | None = None,
        tokens_per_batch: int | None = None,
    ) -> Any:
        """Return (sentences, D): the mean or maximum over each sentence's tokens, or the last.

        With `pool="last"`, the forward half is that of the last token and the backward half that of
        the first token, so that each direction has read the whole sentence. `pool="similarity"`
        gives vectors whose cosines compare meanings: frequent words count less, and all directions
        have the same variance in ordinary text. It has its own layers and width; the model needs
        what `fit_similarity` computes, which the model shipped with elmore has.

        A sentence without tokens gets zeros. Several layers are concatenated, layer by layer. Input
        and the other arguments are as for `embed`; one sentence gives a single vector.
        """
        how = Pool(read_choice("pool", pool, Pool))
        wanted = Output(read_choice("output", output, Output))
        similarity = self.find_similarity(layers) if how is Pool.SIMILARITY else None
        if similarity is None:
            dim = (self.choose_layers(layers).num_kept or 1) * self.vector_dim
        else:
            layers, dim = similarity.layers, similarity.dim
        parsed, is_single = self._parse_input(sentences, tokenized=tokenized)
        windows = self._windows(
            parsed,
            layers=layers,
            rows=max(len(parsed), 1),
            batch_size=batch_size,
            tokens_per_batch=tokens_per_batch,
        )
        pooled: list[Array] = []
        with show_progress(len(parsed), is_shown=progress) as advance:
            for window in windows:
                for tokens, vectors in zip(window.sentences, window.vectors, strict=True):
                    found = pool_sentence(tokens, vectors, how, similarity=similarity)
                    pooled.append(found.reshape(-1))
                advance(len(window.vectors))
        stacked = np.stack(pooled) if pooled else np.empty((0, dim), dtype=np.float32)
        kept = stacked[0] if is_single else stacked
        return torch.from_numpy(kept).to(self.device) if wanted is Output.TORCH else kept

    def fit_similarity(
        self,
        sentences: Iterable[Sentence],
        *,
        layers: str | int | Sequence[int] = 0,
        smoothing: float = SMOOTHING,
        progress: bool = False,
    ) -> Similarity:
        """Prepare `sentence_vectors(pool="similarity")` on ordinary text, some 10,000 sentences.

        No labels are needed. `smoothing` is the relative frequency at which a token counts half as
        much as a rare one. `save` writes the result, which is also returned, with the model.
        """
        check_positive("smoothing", smoothing)
        check_number("smoothing", smoothing, least=0, most=1.0)
        if not isinstance(layers, str | int | list | tuple):
            raise ConfigError(
                f"layers is {layers!r:.60}; give average, top, a layer number or a list of them"
            )
        parsed = [self._parse(sentence) for sentence in check_sentences(sentences)]
        with show_progress(len(parsed), is_shown=progress) as advance:

            def read() -> Iterator[Array]:
                windows = self.windows(parsed, layers=layers, rows=max(len(parsed), 1))
                for window in windows:
                    yield from window.vectors
                    advance(len(window.vectors))

            self._similarity = fit_similarity(parsed, read(), layers=layers, smoothing=smoothing)
        return self._similarity

    def find_similarity(self, layers: Layers | None = None) -> Similarity:
        """Return what `fit_similarity` computed, from the model folder if it was stored there.

        `layers` are those of a call, which cannot choose them.
        """
        if layers is not None:
            raise ConfigError(
                f"layers is {layers!r:.60}, but pool='similarity' has layers of its own; leave "
                "out layers, or choose them in fit_similarity"
            )
        found = self._similarity or self._origin.read_similarity()
        if found is None:
            raise ModelError(
                "this model has nothing stored for pool='similarity'; call "
                "fit_similarity(sentences) first, with text like yours, or use pool='mean'"
            )
        return found

    def to_features(self, column: str = "text", **how: Any) -> "ArrowEmbedder":
        """Return a function that adds vectors to batches of a table, such as those of datasets.

        The arguments are those of `elmore.ArrowEmbedder`.

        ```python
        dataset = dataset.map(embedder.to_features("text", pool="mean"), batched=True)
        ```
        """
        from elmore.embed.arrow_embedder import ArrowEmbedder  # noqa: PLC0415  imports this module

        return ArrowEmbedder(self, column=column, **how)

    @overload
    def tokenize(self, text: str) -> list[str]: ...

    @overload
    def tokenize(self, text: list[str] | tuple[str, ...]) -> list[list[str]]: ...

    def tokenize(self, text: str | Iterable[str]) -> list[str] | list[list[str]]:
        """Return the tokens that `embed` makes of a string, or of each string in a list."""
        if isinstance(text, str):
            return self._parse(text)
        return [self._parse(sentence) for sentence in check_sentences(text)]

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        """Return where each token of a string is, so that `text[start:end]` is the token."""
        return find_offsets(text, self._parse(text))

    def score(self, sentences: str | Iterable[Sentence]) -> Any:
        """Return each sentence's log-probability per token, from both directions.

        One sentence gives one `SentenceScore`. The model needs its LM head: models trained by
        elmore and TensorFlow checkpoints have one, HDF5 weights do not.
        """
        parsed, is_single = self._parse_input(sentences, tokenized=False)
        scores = list(self.language_model.score(parsed))
        return scores[0] if is_single else scores

    def fill(self, sentence: Sentence, *, top: int = 10) -> "list[GapFilling]":
        """Return the words that fit best where the sentence has `___`."""
        return self.language_model.fill(self._parse(sentence), top=top)

    @property
    def has_lm_head(self) -> bool:
        """Whether it can score sentences and fill gaps; published weights have no LM head."""
        return self._origin.has_lm_head

    @property
    def language_model(self) -> "LanguageModel":
        """The model with its LM head, loaded on first use.

        Unless the embedder has packed its weights, both use the same model, changes included.
        """
        return self._origin.load_language_model(self.device)

    def save(
        self,
        folder: str | Path,
        *,
        store: Precision | str = Precision.F32,
        store_softmax: Precision | str | None = None,
    ) -> None:
        """Write a model folder with the current weights, and with the LM head if there is one.

        `store_softmax` is the format of the LM head, by default that of the other weights; it can
        also be `int8`.
        """
        self._origin.save(
            folder,
            similarity=self._similarity,
            device=self.device,
            store=store,
            store_softmax=store_softmax,
        )

    def load_model(self) -> ElmoModel:
        """Return the model with its weights, loading them again if they were released."""
        return self._origin.load_model()

    @property
    def is_shipped(self) -> bool:
        """Whether this is the model that comes with elmore."""
        return self._origin.is_shipped

    def find_path(self) -> str:
        """Return the path of the model's files, for functions that read them again."""
        return self._origin.find_path()

    @property
    def device(self) -> torch.device:
        """The device that it computes on."""
        return self._bilm.device

    def to(self, device: str | torch.device) -> Self:
        """Move to another device, in place."""
        source, is_changed = self._origin.source, self._origin.is_changed
        model = move_model(self.load_model(), read_device(device))
        self._origin = self._origin.with_model(model)
        self._freeze()
        if source is not None and not is_changed:
            self._release_weights(source)
        return self

    def __getattr__(self, name: str) -> Any:
        """Name the method that does what another library's method of this name does."""
        raise AttributeError(explain_name(name))

    def __repr__(self) -> str:
        return (
            f"<Embedder {self.model.config.about.name!r}: {self.num_layers} layers of "
            f"{self.vector_dim}, layers={str(self.choose_layers())!r}, state={str(self.state)!r}, "
            f"precision={str(self.precision)!r}, device={str(self.device)!r}, "
            f"kernel={self.kernel!r}>"
        )

    def reset_state(self) -> None:
        """Start over under state policy `stream`."""
        self._memory.forget()

    def clear_cache(self) -> None:
        """Clear the cached token vectors; call this after changing the model's weights."""
        if self.has_own_weights and not self.model.is_released:
            self._freeze()
        else:
            self._engine.cache.clear()

    def _freeze(self) -> None:
        """Pack the model's weights again, and forget the vectors made with the old ones."""
        self._bilm = freeze(self.model.bilm, precision=self.precision)
        self._engine.reader = self._engine.cache.reader = self._bilm
        self._engine.cache.clear()

    def windows(
        self,
        sentences: Iterable[Sequence[str]],
        *,
        layers: Layers | None = None,
        rows: int = 1,
        state: BiLMState | None = None,
        num_before: int = 0,
        output: Output = Output.NUMPY,
        batch_size: int | None = None,
        tokens_per_batch: int | None = None,
    ) -> Iterator[SentenceWindow[Any]]:
        """Embed tokenized sentences window by window, starting from `state` if given.

        This is for jobs that manage the state themselves; the embedder's own is not changed.
        `num_before` is the number of earlier sentences, so that error messages count correctly.
        """
        choice = self.choose_layers(layers)
        reading = WindowedReading(
            self._engine.with_limits(tokens_per_batch=tokens_per_batch, batch_size=batch_size),
            partial(choice.cut, output=output),
            make_empty=partial(choice.make_empty, self._bilm, output=output),
            policy=self.state,
            max_sentence_tokens=self.max_sentence_tokens,
        )
        return reading.read(sentences, rows=rows, state=state, num_before=num_before)

    def _windows(
        self,
        sentences: Iterable[Sequence[str]],
        *,
        layers: Layers | None,
        rows: int,
        **settings: Any,
    ) -> Iterator[SentenceWindow[Any]]:
        """Embed sentences; under policy `stream`, continue the rows of the previous call."""
        if self.state is not StatePolicy.STREAM:
            yield from self.windows(sentences, layers=layers, rows=rows, **settings)
            return
        carried = self._memory.recall(self.initial_state(rows))
        for window in self.windows(sentences, layers=layers, rows=rows, state=carried, **settings):
            if window.state is not None:
                self._memory.keep(window.state)
            yield window

    def _parse(self, sentence: Sentence) -> list[str]:
        return parse_sentence(sentence, language=self.language)

    def _parse_input(
        self, sentences: str | Iterable[Sentence], *, tokenized: bool
    ) -> tuple[list[list[str]], bool]:
        """Return tokenized sentences, and whether a single one was given."""
        if isinstance(sentences, str):
            return [sentences.split() if tokenized else self._parse(sentences)], True
        listed = list(check_sentences(sentences))
        if not tokenized:
            return [self._parse(sentence) for sentence in listed], False
        if listed and all(isinstance(token, str) for token in listed):
            return [self._parse(listed)], True
        return [self._parse(sentence) for sentence in listed], False
