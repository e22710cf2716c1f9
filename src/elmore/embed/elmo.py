"""ELMo as a module for task networks: a biLM, frozen or not, and one or more learned mixes.

Shapes: B sentences, T tokens in the longest, D both directions or the projection.
"""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, nn

from elmore.config import StatePolicy
from elmore.embed.embedder import Embedder
from elmore.errors import ConfigError, DataError
from elmore.model.bilm import BiLM
from elmore.model.packing import drop_markers, to_padded
from elmore.model.scalar_mix import ScalarMix
from elmore.model.state import BiLMState, RowMemory
from elmore.settings import read_choice
from elmore.text.batches import Batch, Speller, make_batch, make_batch_of_ids
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.loading import load_model


@dataclass(frozen=True, kw_only=True, slots=True)
class ElmoOutput:
    """One tensor per representation, and the mask of their tokens."""

    representations: list[Tensor]  # each (B, T, D), zero at padding
    mask: Tensor  # (B, T) bool


class Elmo(nn.Module):
    """ELMo vectors for the input or the output of a task network, or both.

    `model` is what `elmore.load` returns or accepts (a path or a hub id), or just a biLM; then
    `forward` accepts batches only. Each of the `num_representations` has its own mix, and the biLM
    runs once for all of them.
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
        if not isinstance(num_representations, int) or num_representations < 1:
            raise ValueError(f"num_representations is {num_representations!r}; give at least 1")
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
        batch = sentences if isinstance(sentences, Batch) else self._make_batch(sentences)
        with nullcontext() if self.trains_bilm else torch.no_grad():
            output = self.bilm(batch, self._begin(len(batch.lengths), starts_document))
        if self.state is not StatePolicy.RESET:
            self._memory.keep(output.state)
        # As in AllenNLP, layer norm includes the markers, so they are dropped after the mix.
        mixed = torch.stack([mix(output.layers) for mix in self.mixes])
        padded, mask = self._pad(mixed, batch.lengths)
        padded = self.dropout(padded)
        if self.projection is not None:
            padded = self.projection(padded) * mask.unsqueeze(-1)
        return ElmoOutput(representations=list(padded), mask=mask)

    def penalty(self, strength: float) -> Tensor:
        """Return `strength * |weights|^2` of all mixes, for a task to add to its loss."""
        penalties = [mix.penalty(strength) for mix in self.mixes if isinstance(mix, ScalarMix)]
        return torch.stack(penalties).sum()

    def reset_state(self) -> None:
        """Start every row from the initial state again, under policies that carry state."""
        self._memory.forget()

    def _make_batch(self, sentences: Iterable[Sequence[str]] | Tensor) -> Batch:
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
        batch = (
            make_batch_of_ids(sentences, self.speller)
            if isinstance(sentences, Tensor)
            else make_batch(list(sentences), self.speller)
        )
        return batch.to(self.bilm.device)

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
