"""ELMo as a module for task networks: a biLM, frozen or not, and one or more learned mixes.

Shapes: B sentences, T tokens in the longest, D both directions or the projection.
"""

import copy
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from elmore.arguments import explain_calls
from elmore.config import Precision, StatePolicy
from elmore.embed.embedder import Embedder
from elmore.embed.other_names import OTHER_ELMO_ARGUMENTS
from elmore.errors import ConfigError, DataError
from elmore.model.bilm import BiLM, version_of
from elmore.model.compilation import is_exporting, not_compiled, register_output
from elmore.model.packing import drop_markers, to_padded
from elmore.model.padded_bilm import add_markers, read_padded
from elmore.model.scalar_mix import ScalarMix, read_logits
from elmore.model.state import BiLMState, RowMemory
from elmore.read.token_cache import TokenCache
from elmore.settings import check_number, check_range, read_choice, read_path
from elmore.text.batches import (
    NUM_MARKERS,
    Batch,
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
    `forward` accepts batches only. Training never changes a given embedder, but it does change a
    given `ElmoModel` or biLM. Each of the `num_representations` has its own mix, and the biLM runs
    once for all of them. With 0 of them, there are only `encode` and `contextualize`.

    `initial_logits` are the numbers inside the softmax of the mixes, one per layer. To start from
    known weights, give their logarithms.
    """

    @explain_calls(OTHER_ELMO_ARGUMENTS)
    def __init__(
        self,
        model: Embedder | ElmoModel | BiLM | str | Path,
        *,
        num_representations: int = 1,
        trains_bilm: bool = False,
        trains_mix: bool = True,
        initial_logits: Sequence[float] | None = None,
        normalizes: bool = False,
        dropout: float = 0.5,
        projection_dim: int | None = None,
        keeps_markers: bool = False,
        state: StatePolicy | str = StatePolicy.RESET,
        initial_weights: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        check_range("num_representations", num_representations, 0, sys.maxsize)
        if projection_dim is not None:
            check_range("projection_dim", projection_dim, 0, sys.maxsize)
        check_number("dropout", dropout, least=0, most=1)
        loaded = _load(model)
        bilm = loaded.bilm if isinstance(loaded, ElmoModel) else loaded
        self.bilm = bilm
        self.speller = loaded.speller if isinstance(loaded, ElmoModel) else None
        # In a tuple, because a submodule would change the names in the state dict.
        self._model = (loaded,) if isinstance(loaded, ElmoModel) else ()
        logits = read_logits(initial_logits, initial_weights, num_layers=bilm.num_layers)
        self.trains_bilm = trains_bilm
        bilm.requires_grad_(trains_bilm)
        if not trains_bilm:
            bilm.eval()
        self.mixes = nn.ModuleList(
            ScalarMix(
                num_layers=bilm.num_layers,
                normalizes=normalizes,
                initial_logits=logits,
                trainable=trains_mix,
            )
            for _ in range(num_representations)
        )
        self.projection = nn.Linear(bilm.output_dim, projection_dim) if projection_dim else None
        self.dropout = nn.Dropout(dropout)
        self.keeps_markers = keeps_markers
        self.state = state
        self._memory = RowMemory()
        self._caches: dict[type, tuple[object, TokenCache]] = {}

    @property
    def state(self) -> StatePolicy:
        """The state policy; set it to `reset`, `document` or `stream`."""
        return self._state

    @state.setter
    def state(self, state: StatePolicy | str) -> None:
        self._state = StatePolicy(read_choice("state", state, StatePolicy))

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
        `document` needs `starts_document` (B,): which sentences begin a document. T is the number
        of tokens in the longest sentence, or that of the ids, so that labels of the same padded
        shape fit.
        """
        if not self.mixes:
            raise ConfigError("num_representations is 0, so only encode and contextualize work")
        if is_exporting():
            return self._forward_padded(sentences)
        tokens, lengths = self.encode(sentences)
        layers = self.contextualize(tokens, lengths, starts_document=starts_document)
        # As in AllenNLP, layer norm includes the markers, so they are dropped after the mix.
        mixed = torch.stack([mix(layers) for mix in self.mixes])
        width = sentences.shape[1] if isinstance(sentences, Tensor) else 0
        padded, mask = self._pad(mixed, lengths, width)
        padded = self.dropout(padded)
        if self.projection is not None:
            padded = self.projection(padded) * mask.unsqueeze(-1)
        return ElmoOutput(representations=list(padded), mask=mask)

    def _forward_padded(self, char_ids: Any) -> ElmoOutput:
        """Compute `forward` of padded character ids, for `torch.export`."""
        if not isinstance(char_ids, Tensor) or self.speller is None:
            raise ConfigError(
                "torch.export needs padded character ids (sentences, tokens, characters), an int64 "
                f"tensor, and an Elmo made from a model; got a {type(char_ids).__name__}"
            )
        if self.state is not StatePolicy.RESET:
            raise ConfigError(
                f"state is {str(self.state)!r}, and an exported program carries no state from call "
                "to call; set elmo.state = 'reset' before torch.export"
            )
        alphabet = SpelledTokenReader(self.speller).alphabet
        ids, lengths = add_markers(
            char_ids,
            begin=torch.as_tensor(alphabet.spell_begin(), device=char_ids.device),
            end=torch.as_tensor(alphabet.spell_end(), device=char_ids.device),
            num_units=alphabet.num_units,
        )
        with self._gradient():
            layers = read_padded(self.bilm, ids, lengths)
        mask = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
        mixed = torch.stack([mix(layers, mask) for mix in self.mixes])
        if not self.keeps_markers:
            mixed, mask = mixed[:, :, 1:-1], mask[:, NUM_MARKERS:]
        padded = self.dropout(mixed * mask.unsqueeze(-1))
        if self.projection is not None:
            padded = self.projection(padded) * mask.unsqueeze(-1)
        register_output(ElmoOutput)
        return ElmoOutput(representations=list(padded), mask=mask)

    @not_compiled
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

    @not_compiled
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

    def save(self, folder: str | Path, *, store: Precision | str = Precision.F32) -> None:
        """Write the biLM with its current weights as a model folder, which `elmore.load` reads.

        The LM head of the original model no longer fits a trained biLM and is left out. The mixes
        and the projection belong to the task: save them with `torch.save(elmo.state_dict(), ...)`.
        """
        if not self._model:
            raise ConfigError(
                "this Elmo was made from a biLM alone, which lacks what a model folder needs; make "
                "it from the model, Elmo(model), to save it"
            )
        self._model[0].save_pretrained(read_path("folder", folder), store=store)

    @property
    def carried_state(self) -> BiLMState | None:
        """The state of each row after the last batch; None under policy `reset` or before any.

        It can be set to such a state, to a pair of tensors, hidden (2, L, B, D) and cell
        (2, L, B, C), or to None to start over. Index 0 of the first axis is the forward LM.
        """
        return self._memory.state

    @carried_state.setter
    def carried_state(self, state: BiLMState | tuple[Tensor, Tensor] | None) -> None:
        self._memory.forget()
        if isinstance(state, tuple):
            hidden, cell = state
            state = BiLMState(hidden=hidden, cell=cell)
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
            raise ConfigError(
                "state policy 'document' needs starts_document, one bool per sentence"
            )
        starts = starts_document[:, None].to(initial.hidden.device)
        return BiLMState(
            hidden=torch.where(starts, initial.hidden, carried.hidden),
            cell=torch.where(starts, initial.cell, carried.cell),
        )

    @not_compiled
    def _pad(self, flat: Tensor, lengths: Tensor, width: int) -> tuple[Tensor, Tensor]:
        """Pad to the longest sentence, or to `width` tokens if that is more."""
        if self.keeps_markers:
            return to_padded(flat, lengths, min_width=width + NUM_MARKERS)
        return drop_markers(flat, lengths, min_width=width)


def _load(model: object) -> ElmoModel | BiLM:
    """Return a model with its weights, or a biLM as it is."""
    if isinstance(model, str | Path):
        return load_model(model)
    if isinstance(model, Embedder):
        loaded = model.load_model()
        # A copy, because the embedder keeps vectors that were made with its weights.
        return copy.deepcopy(loaded) if loaded is model.model else loaded
    if isinstance(model, ElmoModel):
        model.require_weights()
    elif not isinstance(model, BiLM):
        raise ConfigError(
            f"got {_describe(model)} where a model was expected; give what elmore.load returns, a "
            "path or a hub id"
        )
    return model


def _describe(given: object) -> str:
    return f"the text {given!r:.40}" if isinstance(given, str) else f"a {type(given).__name__}"
