"""Which tokens of sentences of different lengths are read at each step, in each direction.

"Flat" order is sentence after sentence. "Packed" order is step after step, longest sentence first,
so the sentences of a step are the first sentences of the step before.

Shapes: B sentences, N tokens in total, T the longest sentence, D one direction.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmore.kernels.reading import PackedReader
from elmore.kernels.threads import Queues
from elmore.model.state import BiLMOutput, BiLMState
from elmore.text.batches import NUM_MARKERS


@dataclass(frozen=True, kw_only=True, slots=True)
class Packing:
    """The order in which the tokens of some sentences are read."""

    order: Tensor  # (B,) sentences from longest to shortest
    step_sizes: list[int]  # T numbers: unfinished sentences at each step
    forward_lm: Tensor  # (N,) flat position of each packed row, reading left to right
    backward_lm: Tensor  # (N,) the same, reading right to left


def pack(lengths: Tensor, *, device: torch.device) -> Packing:
    """Plan the reading of sentences with these lengths."""
    # In numpy, because with so few numbers the overhead of torch calls would dominate.
    length = lengths.numpy()
    if len(length) == 1:  # the same result, sooner
        steps = np.arange(length[0])
        return Packing(
            order=_to_tensor(np.zeros(1, np.int64), device),
            step_sizes=[1] * len(steps),
            forward_lm=_to_tensor(steps, device),
            backward_lm=_to_tensor(steps[::-1].copy(), device),
        )
    order = np.argsort(-length, kind="stable")
    sorted_length = length[order]
    start = (length.cumsum() - length)[order]
    longest = int(sorted_length[0]) if len(length) else 0
    is_read = np.arange(longest)[:, None] < sorted_length  # (T, B)
    step, row = is_read.nonzero()
    first = start[row]
    return Packing(
        order=_to_tensor(order, device),
        step_sizes=is_read.sum(axis=1).tolist(),
        forward_lm=_to_tensor(first + step, device),
        backward_lm=_to_tensor(first + (sorted_length - 1)[row] - step, device),
    )


def _to_tensor(numbers: NDArray[np.int64], device: torch.device) -> Tensor:
    return torch.from_numpy(numbers).to(device)


def read_sentences(
    read: Callable[[Tensor, Packing, BiLMState], BiLMOutput],
    tokens: Tensor,
    lengths: Tensor,
    start: BiLMState,
    *,
    num_layers: int,
) -> BiLMOutput:
    """Pack sentences, `read` them, and restore the order of their states.

    `read` takes and returns flat (N, D) tokens; only its states are in packed order.
    """
    if len(lengths) == 0:
        empty = tokens.new_zeros((num_layers, 0, 2 * tokens.shape[1]))
        return BiLMOutput(layers=empty, state=start)
    packing = pack(lengths, device=tokens.device)
    if len(lengths) == 1:  # a single sentence is in packed order already
        return read(tokens, packing, start)
    output = read(tokens, packing, start[packing.order])
    return BiLMOutput(layers=output.layers, state=output.state[invert(packing.order)])


def read_packed(
    reader: PackedReader, tokens: Tensor, packing: Packing, start: BiLMState
) -> BiLMOutput:
    """Read flat (N, D) tokens with packed LSTMs."""
    layers, hidden, cell = reader.read(
        tokens,
        step_sizes=packing.step_sizes,
        positions=[packing.forward_lm, packing.backward_lm],
        hidden=start.hidden,
        cell=start.cell,
    )
    return BiLMOutput(layers=layers, state=BiLMState(hidden=hidden, cell=cell))


class QueuedReading:
    """Sentences that are read in other threads."""

    def __init__(
        self,
        reader: PackedReader,
        queues: Queues,
        tokens: Tensor,
        lengths: Tensor,
        start: BiLMState,
    ) -> None:
        packing = pack(lengths, device=tokens.device)
        first = start[packing.order]
        self._order = packing.order
        self._started, (self._layers, self._hidden, self._cell) = reader.start(
            queues,
            tokens,
            step_sizes=packing.step_sizes,
            positions=[packing.forward_lm, packing.backward_lm],
            hidden=first.hidden,
            cell=first.cell,
        )

    def result(self) -> BiLMOutput:
        """Wait for the result."""
        self._started.wait()
        final = BiLMState(hidden=self._hidden, cell=self._cell)
        return BiLMOutput(layers=self._layers, state=final[invert(self._order)])

    def cancel(self) -> None:
        """Do not begin what has not begun yet."""
        self._started.cancel()


def invert(permutation: Tensor) -> Tensor:
    """Return the inverse permutation."""
    inverse = torch.empty_like(permutation)
    inverse[permutation] = torch.arange(len(permutation), device=permutation.device)
    return inverse


def to_padded(flat: Tensor, lengths: Tensor, *, min_width: int = 0) -> tuple[Tensor, Tensor]:
    """Pad (..., N, D) to (..., B, T, D) with zeros; also return the (B, T) mask.

    T is the longest sentence, or `min_width` if that is more.
    """
    longest = int(lengths.max()) if len(lengths) else 0
    mask = (torch.arange(max(longest, min_width)) < lengths[:, None]).to(flat.device)
    padded = flat.new_zeros((*flat.shape[:-2], *mask.shape, flat.shape[-1]))
    padded[..., mask, :] = flat
    return padded, mask


def drop_markers(flat: Tensor, lengths: Tensor, *, min_width: int = 0) -> tuple[Tensor, Tensor]:
    """Drop the sentence markers and pad (..., N, D) to (..., B, T, D); also return the mask."""
    ends = lengths.cumsum(0)
    is_token = torch.ones(flat.shape[-2], dtype=torch.bool)
    is_token[ends - 1] = False
    is_token[ends - lengths] = False
    tokens = flat[..., is_token.to(flat.device), :]
    return to_padded(tokens, lengths - NUM_MARKERS, min_width=min_width)
