"""The protocol that the reading engine needs; `BiLM` and `PackedBiLM` implement it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from elmore.model.state import BiLMOutput, BiLMState
from elmore.text.batches import TokenIds


class Reader(Protocol):
    """A network that reads sentences in both directions."""

    @property
    def num_layers(self) -> int:
        """The LSTM layers and the token layer."""

    @property
    def output_dim(self) -> int:
        """The width of a layer: both directions."""

    @property
    def device(self) -> torch.device:
        """The device of the weights."""

    def encode(self, ids: TokenIds) -> Tensor:
        """Return the (U, D) context-free vectors of distinct tokens."""

    def initial_state(self, num_sentences: int) -> BiLMState:
        """Return the state that sentences start from."""

    def contextualize(
        self, tokens: Tensor, lengths: Tensor, state: BiLMState | None = None
    ) -> BiLMOutput:
        """Run over flat (N, D) token vectors of sentences with these (B,) lengths, from `state`."""


class StartedReading(Protocol):
    """Sentences that are being read in other threads."""

    def result(self) -> BiLMOutput:
        """Wait for the result."""

    def cancel(self) -> None:
        """Do not begin what has not begun yet."""


StartReading = Callable[[Tensor, Tensor, BiLMState | None], StartedReading]


@runtime_checkable
class ReaderAhead(Protocol):
    """A network that can also read in other threads while its caller does something else."""

    def read_ahead(self) -> AbstractContextManager[StartReading | None]:
        """Give a function that starts `contextualize` in other threads; None if none is free."""
