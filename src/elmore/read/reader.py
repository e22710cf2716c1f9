"""What the reading engine needs of a network: `BiLM` and `PackedBiLM` have it, others may."""

from typing import Protocol

import torch
from torch import Tensor

from elmore.model.state import BiLMOutput, BiLMState
from elmore.text.batches import TokenIds


class Reader(Protocol):
    """A network that reads sentences in both directions."""

    @property
    def num_layers(self) -> int:
        """The LSTM layers, and the token layer below them."""

    @property
    def output_dim(self) -> int:
        """Width of a layer: both directions side by side."""

    @property
    def device(self) -> torch.device:
        """Where it computes."""

    def encode(self, ids: TokenIds) -> Tensor:
        """Return (U, D) context-free vectors of distinct tokens."""

    def initial_state(self, num_sentences: int) -> BiLMState:
        """Return the state in which sentences begin."""

    def contextualize(
        self, tokens: Tensor, lengths: Tensor, state: BiLMState | None = None
    ) -> BiLMOutput:
        """Read flat (N, D) token vectors of sentences of these (B,) lengths, from `state`."""
