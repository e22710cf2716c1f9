"""The LSTM state, and how it is carried from batch to batch.

Shapes: L LSTM layers, B sentences, N tokens in total, D one direction, C cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class BiLMState:
    """The state of B sentences; index 0 of the first axis is the forward LM."""

    hidden: Tensor  # (2, L, B, D)
    cell: Tensor  # (2, L, B, C)

    def __len__(self) -> int:
        """Return the number of sentences."""
        return self.hidden.shape[2]

    def __getitem__(self, rows: slice | Tensor | Sequence[int]) -> "BiLMState":
        """Return the state of some of the sentences."""
        return BiLMState(hidden=_take(self.hidden, rows), cell=_take(self.cell, rows))

    def like(self, other: "BiLMState") -> "BiLMState":
        """Convert to the dtype and device of another state."""
        return BiLMState(hidden=self.hidden.to(other.hidden), cell=self.cell.to(other.cell))

    def detach(self) -> "BiLMState":
        """Detach the state from the autograd graph."""
        return BiLMState(hidden=self.hidden.detach(), cell=self.cell.detach())


@dataclass(frozen=True, kw_only=True, slots=True)
class BiLMOutput:
    """All layers of all tokens, sentence after sentence, with markers; and the final state.

    Layer 0 is the token vector, once per direction.
    """

    layers: Tensor  # (L + 1, N, 2D)
    state: BiLMState


def _take(states: Tensor, rows: slice | Tensor | Sequence[int]) -> Tensor:
    """Return `states[:, :, rows]`."""
    if (
        isinstance(rows, Tensor)
        and rows.dtype == torch.int64
        and states.is_cpu
        and states.dtype == torch.float32
        and not states.requires_grad
    ):
        # Not by torch, whose threads would then keep their cores busy, and slow down the kernel's.
        return torch.from_numpy(states.numpy().take(rows.numpy(), axis=2))
    return states[:, :, rows]


def repeat_state(hidden: Tensor, cell: Tensor, num_sentences: int) -> BiLMState:
    """Start every sentence from the same (2, L, D) and (2, L, C)."""
    return BiLMState(
        hidden=hidden.unsqueeze(2).expand(-1, -1, num_sentences, -1),
        cell=cell.unsqueeze(2).expand(-1, -1, num_sentences, -1),
    )


def join(states: Sequence[BiLMState]) -> BiLMState:
    """Concatenate the sentences of several states."""
    return BiLMState(
        hidden=torch.cat([state.hidden for state in states], dim=2),
        cell=torch.cat([state.cell for state in states], dim=2),
    )


class RowMemory:
    """Carry state from batch to batch, row by row, as bilm-tf and AllenNLP do.

    A batch with fewer rows leaves the state of the others unchanged; new rows start fresh.
    """

    def __init__(self) -> None:
        self.state: BiLMState | None = None

    def recall(self, initial: BiLMState) -> BiLMState:
        """Return the state from which a batch's rows continue; new rows start from `initial`."""
        num_rows = len(initial)
        if self.state is None:
            return initial
        known = self.state[:num_rows].like(initial)
        return known if len(known) == num_rows else join([known, initial[len(known) :]])

    def keep(self, final: BiLMState) -> None:
        """Save the final state of a batch's rows."""
        final = final.detach()
        if self.state is not None and len(self.state) > len(final):
            final = join([final, self.state[len(final) :].like(final)])
        self.state = final

    def forget(self) -> None:
        """Reset all rows."""
        self.state = None

    def reset(self, rows: Tensor, initial: BiLMState) -> None:
        """Reset the rows that are True in the (B,) `rows` to the `initial` state of one row."""
        num_rows = 0 if self.state is None else len(self.state)
        if self.state is None or len(rows) != num_rows:
            raise ValueError(f"expected one bool for each of {num_rows} rows, got {len(rows)}")
        chosen = rows.to(self.state.hidden.device).bool()[:, None]
        initial = initial.like(self.state)
        self.state = BiLMState(
            hidden=torch.where(chosen, initial.hidden, self.state.hidden),
            cell=torch.where(chosen, initial.cell, self.state.cell),
        )
