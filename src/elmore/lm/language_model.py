"""A biLM with the softmax that it was trained with: what can tell how likely a text is."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from elmore.errors import ModelError
from elmore.weights.elmo_model import ElmoModel, assemble_model
from elmore.weights.hub import fetch, upload
from elmore.weights.loading import find_default, load_model
from elmore.weights.model_folder import WEIGHTS, check_target, find_folder, round_tensors
from elmore.weights.softmax_file import (
    FILES,
    SETTINGS,
    SavedSoftmax,
    Softmax,
    has_softmax,
    read_softmax,
    replace_softmax,
)

if TYPE_CHECKING:
    from elmore.lm.scoring import GapFilling, SentenceScore


@dataclass(frozen=True)
class LanguageModel:
    """A biLM with its LM head: the softmax over words that both directions share."""

    elmo: ElmoModel
    softmax: Softmax
    words: list[str]
    log_shares: Tensor  # (V,) log of each word's share of the training text
    run: Mapping[str, Any] = field(default_factory=dict)
    """How it was trained, for people to read."""

    @classmethod
    def load(cls, source: str | Path | None = None) -> "LanguageModel":
        """Load a model folder or a hub id with an LM head; without a source, elmore's own model."""
        return load_language_model(source)

    def score(self, sentences: Iterable[Sequence[str]]) -> "Iterator[SentenceScore]":
        """Yield each tokenized sentence's log-probability per token, from both directions."""
        from elmore.lm.scoring import score_sentences  # noqa: PLC0415  which imports this module

        return score_sentences(self, sentences)

    def fill(self, tokens: Sequence[str], *, top: int = 10) -> "list[GapFilling]":
        """Return the words that fit best in the one gap `___` of a tokenized sentence."""
        from elmore.lm.scoring import fill_gap  # noqa: PLC0415

        return fill_gap(self, tokens, top=top)

    def to(self, device: torch.device | str) -> "LanguageModel":
        """Move to another device, in place."""
        self.elmo.to(device)
        self.softmax.to(device)
        return self

    def save(
        self, folder: str | Path, *, run: Mapping[str, Any] | None = None, store: str = "f32"
    ) -> None:
        """Write a model folder with a softmax, all of it or nothing that would be believed."""
        folder = Path(folder)
        check_target(folder)
        if self.log_shares.shape != (len(self.words),):
            raise ModelError(
                f"there are {len(self.words)} words and {tuple(self.log_shares.shape)} shares of "
                "the training text; give one a word"
            )
        saved = SavedSoftmax(
            softmax=self.softmax,
            words=self.words,
            log_shares=self.log_shares,
            model=_fingerprint_on_disk(self.elmo, store=store),
            run=_plain(self.run if run is None else run),
        )
        with replace_softmax(folder, saved, store=store):
            self.elmo.save_pretrained(folder, store=store)

    def push_to_hub(self, repo_id: str, *, store: str = "f32", **hub_options: Any) -> str:
        """Upload the model folder with its softmax; return where it went."""
        return upload(lambda folder: self.save(folder, store=store), repo_id, **hub_options)


class NoSoftmaxError(ModelError):
    """A model can embed, but predicts no words."""


def find_model(source: str | Path | None, *, softmax_files: Sequence[str] = (SETTINGS,)) -> Path:
    """Return where a model is; of a softmax on the hub, only the named files are fetched."""
    if source is None:
        return find_default()
    folder = find_folder(source)
    if folder != Path(source).expanduser():  # from the hub
        fetch(str(source), softmax_files)
    return folder


def load_language_model(source: str | Path | None = None) -> LanguageModel:
    """Load a model folder or a hub id whose model has a softmax; without one, elmore's own."""
    folder = find_model(source, softmax_files=FILES)
    if not has_softmax(folder):
        raise NoSoftmaxError(
            f"the model at {str(source or folder)!r:.200} has no softmax, so it predicts no words "
            "(published models come without one); train or fine-tune one with elmore to score text"
        )
    elmo = load_model(folder)
    saved = read_softmax(folder, dim=elmo.config.lstm.output_dim)
    if saved.model != elmo.fingerprint():
        raise ModelError(
            f"{folder}: the softmax belongs to other weights; save both together again, get the "
            "whole folder again, or convert it with --no-softmax"
        )
    return LanguageModel(
        elmo=elmo,
        softmax=saved.softmax,
        words=saved.words,
        log_shares=saved.log_shares,
        run=saved.run,
    )


def _plain(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return what JSON gives back; numbers that are not finite have no place in it."""
    return json.loads(json.dumps(dict(run)), parse_constant=lambda _: None)


def _fingerprint_on_disk(elmo: ElmoModel, *, store: str) -> str:
    """Return the fingerprint that a model has once it is loaded, in single precision."""
    elmo.require_weights()
    tensors = round_tensors(elmo.bilm.state_dict(), store=store, file=WEIGHTS)
    loaded = assemble_model(
        elmo.config,
        {name: tensor.to(torch.float32) for name, tensor in tensors.items()},
        characters=elmo.characters,
        words=elmo.words,
    )
    return loaded.fingerprint()
