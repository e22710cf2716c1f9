"""ELMo as a module for task networks: a biLM, frozen or not, and one or more learned mixes.

Shapes: B sentences, T tokens in the longest, D both directions or the projection.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from elmore.config import StatePolicy
from elmore.embed.embedder import Embedder
from elmore.errors import ConfigError, DataError
from elmore.model.bilm import BiLM, version_of
from elmore.model.packing import drop_markers, to_padded
from elmore.model.scalar_mix import ScalarMix
from elmore.model.state import BiLMState, RowMemory
from elmore.read.token_cache import TokenCache
from elmore.settings import read_choice
from elmore.text.batches import (
    NUM_MARKERS,
    Batch,
    Speller,
    TokenSpeller,
    check_tokens,
    make_batch,
)
from elmore.text.spelled_tokens import SpelledTokenReader
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.loading import load_model

CACHE_SIZE = 30_000  # token vectors


@dataclass(frozen=True, kw_only=True, slots=True)
class ElmoOutput:
    """One tensor per representation, and the mask of their tokens."""

    representations: list[Tensor]  # each (B, T, D), zero at padding
    mask: Tensor  # (B, T) bool


class Elmo(nn.Module):
    """ELMo vectors for the input or the output of a task network, or both.

    `model` is what `elmore.load` returns or accepts (a path or a hub id), or just a biLM; then
    `forward` accepts batches only. Each of the `num_representations` has its own mix, and the biLM
    runs once for all of them. With 0 of them, there are only `encode` and `contextualize`.
    """

    def __init__(
        self,
        model: Embedder | ElmoModel | BiLM | str | Path,
        *,
        num_representations: int = 1,
        trains_bilm: bool = False,
        trains_mix: bool = True,
        initial_weights: Sequence[float] | None = None,
        normalizes: bool = False,
        dropout: float = 0.5,
        projection_dim: int | None = None,
        keeps_markers: bool = False,
        state: StatePolicy | str = StatePolicy.RESET,
    ) -> None:
        super().__init__()
        if not isinstance(num_representations, int) or num_representations < 0:
            raise ValueError(f"num_representations is {num_representations!r}; give at least 0")
        loaded = load_model(model) if isinstance(model, str | Path) else model
        # Storing the model itself would change the names in the state dict.
        bilm, self.speller = _take_apart(loaded)
        self.bilm = bilm
        self.trains_bilm = trains_bilm
        bilm.requires_grad_(trains_bilm)
        if not trains_bilm:
            bilm.eval()
        self.mixes = nn.ModuleList(
            ScalarMix(
                num_layers=bilm.num_layers,
                normalizes=normalizes,
                initial_weights=initial_weights,
                trainable=trains_mix,
            )
            for _ in range(num_representations)
        )
        self.projection = nn.Linear(bilm.output_dim, projection_dim) if projection_dim else None
        self.dropout = nn.Dropout(dropout)
        self.keeps_markers = keeps_markers
        self.state = StatePolicy(read_choice("state", state, StatePolicy))
        self._memory = RowMemory()
        self._caches: dict[type, tuple[object, TokenCache]] = {}

    @property
    def output_dim(self) -> int:
        """Width of each representation."""
        return self.projection.out_features if self.projection else self.bilm.output_dim

    def train(self, mode: bool = True) -> Self:
        """Switch dropout on or off; a frozen biLM stays in evaluation mode."""
        super().train(mode)
        if not self.trains_bilm:
            self.bilm.eval()
        return self

    def forward(
        self,
        sentences: Batch | Sequence[Sequence[str]] | Tensor,
        *,
        starts_document: Tensor | None = None,
    ) -> ElmoOutput:
        """Compute vectors of tokenized sentences, a batch, or padded (B, T, C) character ids.

        Batches come from `ElmoModel.batch`, ids from AllenNLP's `batch_to_ids`. State policy
        `document` needs `starts_document` (B,): which sentences begin a document.
        """
        if not self.mixes:
            raise ValueError("num_representations is 0, so only encode and contextualize work")
        tokens, lengths = self.encode(sentences)
        layers = self.contextualize(tokens, lengths, starts_document=starts_document)
        # As in AllenNLP, layer norm includes the markers, so they are dropped after the mix.
        mixed = torch.stack([mix(layers) for mix in self.mixes])
        padded, mask = self._pad(mixed, lengths)
        padded = self.dropout(padded)
        if self.projection is not None:
            padded = self.projection(padded) * mask.unsqueeze(-1)
        return ElmoOutput(representations=list(padded), mask=mask)

    def encode(self, sentences: Batch | Sequence[Sequence[str]] | Tensor) -> tuple[Tensor, Tensor]:
        """Return flat (N, D) context-free vectors, markers included, and the (B,) lengths.

        On the CPU, vectors are cached if no gradient is needed.
        """
        if isinstance(sentences, Batch):
            batch = sentences
        else:
            tokens, speller = self._read_tokens(sentences)
            cache = self._find_cache(speller)
            if cache is not None:
                lengths = [len(sentence) + NUM_MARKERS for sentence in tokens]
                return cache.find(tokens), torch.tensor(lengths, dtype=torch.int64)
            batch = make_batch(tokens, speller).to(self.bilm.device)
        with self._gradient():
            return self.bilm.encode(batch.tokens)[batch.positions], batch.lengths

    def encode_padding(self) -> Tensor:
        """Return the (D,) context-free vector of a token without characters.

        bilm-tf and AllenNLP's character encoder have it in layer 0 where there is no token.
        """
        assert self.speller is not None
        ids = SpelledTokenReader(self.speller).spell([""]).to(self.bilm.device)
        with self._gradient():
            return self.bilm.encode(ids)[0]

    def contextualize(
        self, tokens: Tensor, lengths: Tensor, *, starts_document: Tensor | None = None
    ) -> Tensor:
        """Return all layers (L, N, D) of flat token vectors with markers, under the state policy.

        `tokens` and `lengths` are what `encode` returns.
        """
        with self._gradient():
            output = self.bilm.contextualize(
                tokens, lengths, self._begin(len(lengths), starts_document)
            )
        if self.state is not StatePolicy.RESET:
            self._memory.keep(output.state)
        return output.layers

    def penalty(self, strength: float) -> Tensor:
        """Return `strength * |weights|^2` of all mixes, for a task to add to its loss."""
        penalties = [mix.penalty(strength) for mix in self.mixes if isinstance(mix, ScalarMix)]
        return torch.stack(penalties).sum()

    @property
    def carried_state(self) -> BiLMState | None:
        """The state of each row after the last batch; None under policy `reset` or before any."""
        return self._memory.state

    @carried_state.setter
    def carried_state(self, state: BiLMState | None) -> None:
        self._memory.forget()
        if state is not None:
            self._memory.keep(state)

    def reset_state(self, rows: Tensor | None = None) -> None:
        """Start all rows, or those that are True in `rows` (B,), from the initial state again."""
        if rows is None:
            self._memory.forget()
        else:
            self._memory.reset(rows, self.bilm.initial_state(1))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be recomputed."""
        return {**self.__dict__, "_caches": {}}

    def _gradient(self) -> AbstractContextManager[None]:
        return nullcontext() if self.trains_bilm else torch.no_grad()

    def _find_cache(self, speller: TokenSpeller) -> TokenCache | None:
        """Return the cache of token vectors, emptied if a weight has changed."""
        needs_gradient = self.trains_bilm and torch.is_grad_enabled()
        if needs_gradient or self.bilm.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
            return None
        version = version_of(self.bilm.token_encoder.parameters())
        known, cache = self._caches.get(type(speller), (None, None))
        if cache is None or known != version:
            cache = TokenCache(self.bilm, speller, size=CACHE_SIZE)
            self._caches[type(speller)] = (version, cache)
        return cache

    def _read_tokens(
        self, sentences: Iterable[Sequence[str]] | Tensor
    ) -> tuple[list[Sequence[str]], TokenSpeller]:
        if isinstance(sentences, str | bytes) or not isinstance(sentences, Iterable):
            raise DataError(
                f"got {_describe(sentences)} where sentences were expected; give lists of tokens, "
                "such as [['A', 'sentence', '.']], or model.batch(sentences)"
            )
        if self.speller is None:
            raise ConfigError(
                "this Elmo was made from a biLM alone, which cannot spell tokens; make it from the "
                "model, Elmo(model), or give it batches, model.batch(sentences)"
            )
        if isinstance(sentences, Tensor):
            reader = SpelledTokenReader(self.speller)
            return list(reader.split(sentences)), reader
        tokens = list(sentences)
        check_tokens(tokens)
        return tokens, self.speller

    def _begin(self, num_sentences: int, starts_document: Tensor | None) -> BiLMState:
        initial = self.bilm.initial_state(num_sentences)
        if self.state is StatePolicy.RESET:
            return initial
        carried = self._memory.recall(initial)
        if self.state is StatePolicy.STREAM:
            return carried
        if starts_document is None:
            raise ValueError("state policy 'document' needs starts_document, one bool per sentence")
        starts = starts_document[:, None].to(initial.hidden.device)
        return BiLMState(
            hidden=torch.where(starts, initial.hidden, carried.hidden),
            cell=torch.where(starts, initial.cell, carried.cell),
        )

    def _pad(self, flat: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        return to_padded(flat, lengths) if self.keeps_markers else drop_markers(flat, lengths)


def _take_apart(model: object) -> tuple[BiLM, Speller | None]:
    """Return the biLM and the speller of a model."""
    if isinstance(model, BiLM):
        return model, None
    if isinstance(model, Embedder):
        model = model.load_model()
    if isinstance(model, ElmoModel):
        model.require_weights()
        return model.bilm, model.speller
    raise ConfigError(
        f"got {_describe(model)} where a model was expected; give what elmore.load returns, a path "
        "or a hub id"
    )


def _describe(given: object) -> str:
    return f"the text {given!r:.40}" if isinstance(given, str) else f"a {type(given).__name__}"
