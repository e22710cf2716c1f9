"""Run packed LSTMs over sentences, both directions in parallel, without gradients.

Shapes: L LSTM layers, N tokens in total, B sentences, D one direction, C cells.
"""

import ctypes
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from elmore.config import Precision
from elmore.kernels import interface
from elmore.kernels.library import Kernel, load_kernel
from elmore.kernels.memory import allocate
from elmore.kernels.packed import (
    CODES,
    PackedMatrix,
    check,
    check_floats,
    interleave_numbers,
    narrow,
)
from elmore.kernels.scratch import Take
from elmore.kernels.threads import Queues, Started, run_together

# A team of threads pays off if steps have few rows and the weights of both directions do not fit
# into the caches. Measured on two cores with 32 MB of cache.
MAX_TEAM_ROWS = 4
MIN_TEAM_BYTES = 16 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerWeights:
    """The weights of one LSTM layer of one direction; the bias includes the forget bias."""

    input_weight: Tensor  # (4C, D)
    state_weight: Tensor  # (4C, D)
    bias: Tensor  # (4C,)
    projection_weight: Tensor | None  # (D, C)
    cell_clip: float | None
    output_clip: float | None

    def read(self) -> "LayerWeights":
        """Return all weights at once."""
        return self

    def matrices(self) -> list[Tensor]:
        """Return all weights but the bias."""
        found = [self.input_weight, self.state_weight, self.projection_weight]
        return [weight for weight in found if weight is not None]


class PackableLayer(Protocol):
    """Where the weights of one layer come from: each may be read when it is asked for, once."""

    @property
    def input_weight(self) -> Tensor:
        """See `LayerWeights`."""

    @property
    def state_weight(self) -> Tensor:
        """See `LayerWeights`."""

    @property
    def bias(self) -> Tensor:
        """See `LayerWeights`."""

    @property
    def projection_weight(self) -> Tensor | None:
        """See `LayerWeights`."""

    @property
    def cell_clip(self) -> float | None:
        """See `LayerWeights`."""

    @property
    def output_clip(self) -> float | None:
        """See `LayerWeights`."""

    def read(self) -> LayerWeights:
        """Return all weights at once."""


class PackedLayer:
    """One LSTM layer of one direction, packed for the kernel."""

    def __init__(
        self,
        kernel: Kernel,
        weights: PackableLayer,
        *,
        precision: Precision,
        memory: Take = allocate,
    ) -> None:
        pack = partial(PackedMatrix, kernel, precision=precision, memory=memory)
        # In the order of their names, in which they are read from a file.
        bias = weights.bias
        self.input = pack(weights.input_weight, num_parts=4)
        projection = weights.projection_weight
        self.projection = None if projection is None else pack(projection)
        del projection  # it need not stay in memory while the next one is read
        self.state = pack(weights.state_weight, num_parts=4)
        self.bias = interleave_numbers(bias, num_parts=4, panel=kernel.panel)
        self.precision = precision
        self.cell_clip = inf if weights.cell_clip is None else weights.cell_clip
        self.output_clip = inf if weights.output_clip is None else weights.output_clip
        self.num_cells = len(bias) // 4
        self.num_outputs = self.state.num_inputs

    def pointer(self) -> interface.Layer:
        """Return the struct for native functions; valid while this object lives."""
        return interface.Layer(
            self.input.pointer(),
            self.state.pointer(),
            interface.Matrix() if self.projection is None else self.projection.pointer(),
            self.bias.data_ptr(),
            self.cell_clip,
            self.output_clip,
            self.num_cells,
            self.num_outputs,
            CODES[self.precision],
        )


def _pack_layer(kernel: Kernel, weights: PackableLayer, *, precision: Precision) -> PackedLayer:
    if precision is Precision.F32:  # to narrow it, all weights are needed at once
        weights = weights.read()
        precision = narrow(precision, *weights.matrices())
    return PackedLayer(kernel, weights, precision=precision)


class PackedReader:
    """A packed copy of the LSTMs of both directions; later changes to the weights are not seen."""

    def __init__(
        self,
        kernel: Kernel,
        directions: Sequence[Iterable[PackableLayer]],
        *,
        precision: Precision = Precision.F32,
        has_residuals: bool,
    ) -> None:
        self.kernel_name = kernel.name
        # The backward LM first: in the order of names, in which weights are read from a file.
        self.directions = [
            [_pack_layer(kernel, weights, precision=precision) for weights in layers]
            for layers in reversed(directions)
        ][::-1]
        self.precision = precision
        self.has_residuals = has_residuals
        widths = {
            width
            for layers in self.directions
            for layer in layers
            for width in (layer.input.num_inputs, layer.num_outputs)
        }
        if len(widths) != 1:
            raise ValueError(f"expected layers of equal width, got {sorted(widths)}")
        self._structs = self._make_structs()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the structs, because they hold addresses."""
        return {name: value for name, value in self.__dict__.items() if name != "_structs"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._structs = self._make_structs()

    def _make_structs(self) -> list[ctypes.Array[interface.Layer]]:
        """Return the layers of each direction as native code takes them."""
        return [
            (interface.Layer * len(layers))(*(layer.pointer() for layer in layers))
            for layers in self.directions
        ]

    def read(
        self,
        tokens: Tensor,
        *,
        step_sizes: Sequence[int],
        positions: Sequence[Tensor],
        hidden: Tensor,
        cell: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run over flat (N, D) tokens from states (2, L, B, D) and (2, L, B, C) in packed order.

        `step_sizes` are the numbers of rows of each step, `positions` the (N,) flat position of
        each packed row, per direction (see `model/packing.py`).

        Return flat (L + 1, N, 2D) layers and the final states, with the shapes of the given ones.
        """
        team_size = self._team_size(num_sentences=hidden.shape[2])
        calls, results = self._plan(
            tokens, step_sizes, positions, hidden, cell, team_size=team_size
        )
        if team_size > 1:
            for call in calls:
                call()
        else:
            run_together(*calls)
        return results

    def start(
        self,
        queues: Queues,
        tokens: Tensor,
        *,
        step_sizes: Sequence[int],
        positions: Sequence[Tensor],
        hidden: Tensor,
        cell: Tensor,
    ) -> tuple[Started, tuple[Tensor, Tensor, Tensor]]:
        """Start `read` in other threads; what it returns is filled when they are done."""
        calls, results = self._plan(tokens, step_sizes, positions, hidden, cell, team_size=1)
        return queues.start(*calls), results

    def _plan(
        self,
        tokens: Tensor,
        step_sizes: Sequence[int],
        positions: Sequence[Tensor],
        hidden: Tensor,
        cell: Tensor,
        *,
        team_size: int,
    ) -> tuple[list[Callable[[], None]], tuple[Tensor, Tensor, Tensor]]:
        """Return a call per direction, and the results that they fill."""
        kernel = load_kernel(self.kernel_name)
        num_layers = len(self.directions[0])
        self._check(tokens, step_sizes, positions, hidden, cell)
        tokens = tokens.detach().contiguous()
        hidden, cell = hidden.detach().contiguous(), cell.detach().contiguous()
        num_tokens, dim = tokens.shape
        # Filled by numpy: torch would wake up its threads, which then keep a core busy.
        layers = tokens.new_empty((num_layers + 1, num_tokens, 2 * dim))
        layers[0].numpy().reshape(num_tokens, 2, dim)[:] = tokens.numpy()[:, np.newaxis]
        last_hidden, last_cell = torch.empty_like(hidden), torch.empty_like(cell)
        sizes = np.array(step_sizes, np.int32)

        def find_half(states: Tensor, number: int) -> int:
            """Return the address of one direction's states."""
            return states.data_ptr() + number * states.stride(0) * states.itemsize

        # It refers to all memory that native code uses, so that memory lives as long as the call.
        def read_direction(number: int) -> None:
            check(
                kernel.functions.elmore_read(
                    self._structs[number],
                    num_layers,
                    self.has_residuals,
                    sizes.ctypes.data,
                    len(sizes),
                    positions[number].data_ptr(),
                    tokens.data_ptr(),
                    dim,
                    find_half(hidden, number),
                    find_half(cell, number),
                    find_half(last_hidden, number),
                    find_half(last_cell, number),
                    layers[1].data_ptr() + number * dim * layers.itemsize,
                    layers.stride(0),
                    layers.stride(1),
                    team_size,
                )
            )

        calls: list[Callable[[], None]] = [
            partial(read_direction, number) for number in range(len(self.directions))
        ]
        return calls, (layers, last_hidden, last_cell)

    def _check(
        self,
        tokens: Tensor,
        step_sizes: Sequence[int],
        positions: Sequence[Tensor],
        hidden: Tensor,
        cell: Tensor,
    ) -> None:
        layer = self.directions[0][0]
        states = (2, len(self.directions[0]), step_sizes[0] if step_sizes else 0)
        check_floats("tokens", tokens, (sum(step_sizes), layer.input.num_inputs))
        if any(len(rows) != len(tokens) for rows in positions):
            raise ValueError(f"expected {len(tokens)} positions in each direction")
        check_floats("hidden states", hidden, (*states, layer.num_outputs))
        check_floats("cells", cell, (*states, layer.num_cells))

    def _team_size(self, *, num_sentences: int) -> int:
        """Return the number of threads per direction: 1, unless loading weights dominates.

        With few rows, loading the weights takes longer than computing with them. The caches hold
        more of one direction's weights than of both, so all threads work on one direction and then
        on the other.
        """
        if num_sentences > MAX_TEAM_ROWS:
            return 1
        layer = self.directions[0][0]
        num_bytes = layer.state.num_bytes  # what is read at each step
        if layer.projection is not None:
            num_bytes += layer.projection.num_bytes
        is_large = num_bytes >= MIN_TEAM_BYTES
        num_panels = layer.state.num_panels // 4
        return min(torch.get_num_threads(), os.cpu_count() or 1, num_panels) if is_large else 1
