"""A biLM with its LM head, which scores text and predicts words."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from elmore.errors import ModelError
from elmore.settings import read_path
from elmore.text.inputs import check_sentences
from elmore.text.tokens import parse_sentence
from elmore.weights.bilm_tf_checkpoint import read_checkpoint_softmax
from elmore.weights.elmo_model import ElmoModel, assemble_model
from elmore.weights.hub import fetch, upload
from elmore.weights.loading import (
    ModelSource,
    find_default,
    find_softmax,
    find_source,
    open_source,
    read_source,
)
from elmore.weights.model_folder import WEIGHTS, check_target, round_tensors
from elmore.weights.similarity_file import FILES as SIMILARITY_FILES
from elmore.weights.similarity_file import Similarity
from elmore.weights.softmax_file import (
    FILES,
    SETTINGS,
    SavedSoftmax,
    Softmax,
    has_softmax,
    read_softmax,
    replace_softmax,
)
from elmore.weights.stored_similarity import read_stored_similarity, replace_similarity

if TYPE_CHECKING:
    from elmore.lm.expected_words import ExpectedWords
    from elmore.lm.scoring import GapFilling, SentenceScore


@dataclass(frozen=True, repr=False)
class LanguageModel:
    """A biLM with its LM head: the softmax over words that both directions share."""

    elmo: ElmoModel
    softmax: Softmax
    words: list[str]
    log_shares: Tensor  # (V,) log relative frequency of each word in the training text
    run: Mapping[str, Any] = field(default_factory=dict)
    """How it was trained, for information only."""
    source: ModelSource | None = None
    """Where it was loaded from, with the fingerprint of the weights."""

    def __repr__(self) -> str:
        return (
            f"<LanguageModel {self.elmo.config.about.name!r}: {self.elmo.bilm.num_layers} layers "
            f"of {self.elmo.bilm.output_dim}, LM head over {len(self.words):,} words>"
        )

    @classmethod
    def load(
        cls,
        source: str | Path | None = None,
        *,
        options: str | Path | None = None,
        vocabulary: str | Path | None = None,
        softmax: str | Path | None = None,
    ) -> "LanguageModel":
        """Load a model with its LM head; without a source, elmore's own model.

        `source` is a model folder, a hub id or a TensorFlow checkpoint of bilm-tf, whose `options`
        and `vocabulary` are found next to it or given. `softmax` is a checkpoint whose softmax is
        joined to HDF5 weights.
        """
        return load_language_model(source, options=options, vocabulary=vocabulary, softmax=softmax)

    def score(self, sentences: Iterable[str | Sequence[str]]) -> "Iterator[SentenceScore]":
        """Yield each sentence's log-probability per token, from both directions.

        A sentence is a string, which is split into tokens, or a list of tokens.
        """
        from elmore.lm.scoring import score_sentences  # noqa: PLC0415  which imports this module

        return score_sentences(self, map(parse_sentence, check_sentences(sentences)))

    def fill(self, sentence: str | Sequence[str], *, top: int = 10) -> "list[GapFilling]":
        """Return the words that fit best in the one gap `___` of a sentence."""
        from elmore.lm.scoring import fill_gap  # noqa: PLC0415

        return fill_gap(self, parse_sentence(sentence), top=top)

    def expect(
        self, sentences: Iterable[Sequence[str]], *, top: int = 10, excluded: Sequence[str] = ()
    ) -> "Iterator[list[ExpectedWords]]":
        """Yield, for each token of each sentence, the words that each direction expects there."""
        from elmore.lm.expected_words import expect_words  # noqa: PLC0415

        return expect_words(self, sentences, top=top, excluded=excluded)

    def to(self, device: torch.device | str) -> "LanguageModel":
        """Move to another device, in place."""
        self.elmo.to(device)
        self.softmax.to(device)
        return self

    def save(
        self,
        folder: str | Path,
        *,
        run: Mapping[str, Any] | None = None,
        store: str = "f32",
        store_softmax: str | None = None,
    ) -> None:
        """Write a model folder with its softmax, atomically.

        `store_softmax` is the format of the softmax, by default that of the other weights; it can
        also be `int8`. What `fit_similarity` has stored with a loaded model is written too, unless
        the weights have changed.
        """
        folder = read_path("folder", folder)
        check_target(folder)
        if self.log_shares.shape != (len(self.words),):
            raise ModelError(
                f"expected one log share per word, {len(self.words)} in all; got the shape "
                f"{tuple(self.log_shares.shape)}"
            )
        saved = SavedSoftmax(
            softmax=self.softmax,
            words=self.words,
            log_shares=self.log_shares,
            model=_fingerprint_on_disk(self.elmo, store=store),
            run=_plain(self.run if run is None else run),
        )
        similarity = self._read_similarity()  # first, because its folder may be this one
        store_softmax = store if store_softmax is None else store_softmax
        with replace_softmax(folder, saved, store=store_softmax):
            self.elmo.save_pretrained(folder, store=store)
        replace_similarity(folder, similarity, model=saved.model)

    def _read_similarity(self) -> Similarity | None:
        """Return what is stored for sentence similarity; None if it is of other weights."""
        fingerprint = self.elmo.fingerprint()
        if self.source is None or self.source.fingerprint != fingerprint:
            return None
        return read_stored_similarity(self.source, model=fingerprint)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        store: str = "f32",
        store_softmax: str | None = None,
        **hub_options: Any,
    ) -> str:
        """Upload the model folder that `save` writes; return its URL.

        What is stored for sentence similarity in the repository, but not in this folder, belongs
        to other weights and is deleted.
        """
        return upload(
            lambda folder: self.save(folder, store=store, store_softmax=store_softmax),
            repo_id,
            **{"delete_patterns": SIMILARITY_FILES, **hub_options},
        )


class NoSoftmaxError(ModelError):
    """The model has no softmax, so it can embed but not predict words."""


def find_model(source: ModelSource) -> Path:
    """Return the path of a model; from the hub, also fetch the settings of its softmax."""
    if source.hub_id is not None:
        fetch(source.hub_id, [SETTINGS], **source.hub_options)
    return source.find()


def load_language_model(
    source: str | Path | None = None,
    *,
    options: str | Path | None = None,
    token_embeddings: str | Path | None = None,
    vocabulary: str | Path | None = None,
    softmax: str | Path | None = None,
) -> LanguageModel:
    """Load a model with a softmax; by default, elmore's own."""
    return read_language_model(
        find_source(
            source,
            options=options,
            token_embeddings=token_embeddings,
            vocabulary=vocabulary,
            softmax=softmax,
        )
    )


def read_language_model(source: ModelSource) -> LanguageModel:
    """Load the model of a source with its softmax."""
    if source.hub_id is not None:
        fetch(source.hub_id, FILES, **source.hub_options)
    if source.is_default:
        return _read_folder(find_default(), source, source)
    with open_source(source) as opened:
        assert opened.path is not None
        if has_softmax(Path(opened.path)):
            return _read_folder(Path(opened.path), opened, source)
        found = find_softmax(opened)
        if found is None:
            read_source(opened)  # raises another error if there is no model at all
            raise NoSoftmaxError(
                f"the model at {str(source)!r:.200} has no softmax, so it cannot predict words "
                "(HDF5 weights and ELMoForManyLangs' models come without one); give the TensorFlow "
                "checkpoint of the weights (--softmax), or train or fine-tune a model with elmore"
            )
        elmo = read_source(opened)
        return _join(elmo, read_checkpoint_softmax(*found, elmo))


def _read_folder(folder: Path, opened: ModelSource, source: ModelSource) -> LanguageModel:
    elmo = read_source(opened)
    saved = read_softmax(folder, dim=elmo.config.lstm.output_dim)
    if saved.model != elmo.fingerprint():
        raise ModelError(
            f"{folder}: the softmax does not belong to these weights; save both together, download "
            "the whole folder again, or convert it with --no-softmax"
        )
    return replace(_join(elmo, saved), source=replace(source, fingerprint=saved.model))


def _join(elmo: ElmoModel, saved: SavedSoftmax) -> LanguageModel:
    return LanguageModel(
        elmo=elmo,
        softmax=saved.softmax,
        words=saved.words,
        log_shares=saved.log_shares,
        run=saved.run,
    )


def _plain(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values after a round trip through JSON; NaN and infinity become None."""
    return json.loads(json.dumps(dict(run)), parse_constant=lambda _: None)


def _fingerprint_on_disk(elmo: ElmoModel, *, store: str) -> str:
    """Return the fingerprint that a model has after it is saved and loaded."""
    elmo.require_weights()
    tensors = round_tensors(elmo.bilm.state_dict(), store=store, file=WEIGHTS)
    loaded = assemble_model(
        elmo.config,
        {name: tensor.to(torch.float32) for name, tensor in tensors.items()},
        characters=elmo.characters,
        words=elmo.words,
    )
    return loaded.fingerprint()
