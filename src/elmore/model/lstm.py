"""One LSTM layer of one direction, with clipped cells and a clipped projection.

Shapes: N tokens in total, B sentences, D input, C cells, P output.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from elmore.kernels.reading import LayerWeights
from elmore.model.rows import extend_rows, extend_weight, lay_out, multiply, round_up


class ProjectedLSTM(nn.Module):
    """An LSTM with clipped cells and a clipped, narrower output (Sak et al., 2014).

    Gates are in torch's order: input, forget, candidate, output.
    """

    def __init__(
        self,
        *,
        input_dim: int,
        cell_dim: int,
        output_dim: int,
        has_projection: bool,
        cell_clip: float | None,
        output_clip: float | None,
        forget_bias: float,
    ) -> None:
        super().__init__()
        self.input_weight = nn.Parameter(torch.empty(4 * cell_dim, input_dim))
        self.state_weight = nn.Parameter(torch.empty(4 * cell_dim, output_dim))
        self.bias = nn.Parameter(torch.empty(4 * cell_dim))
        self.projection_weight = (
            nn.Parameter(torch.empty(output_dim, cell_dim)) if has_projection else None
        )
        self.cell_clip = cell_clip
        self.output_clip = output_clip
        self.forget_bias = forget_bias

    def forward(
        self, x: Tensor, step_sizes: Sequence[int], hidden: Tensor, cell: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run over packed (N, D) from states (B, P), (B, C); return packed (N, P), final states.

        `step_sizes` are the numbers of rows of each step. States are in packed order, longest
        sentence first.
        """
        gates_of_input = self._gates_of_input(x)
        hidden = extend_rows(hidden, round_up(len(hidden)))
        cell = extend_rows(cell, round_up(len(cell)))
        state_weight = extend_weight(self.state_weight)
        state_laid_out = lay_out(state_weight)
        projection = (
            None if self.projection_weight is None else extend_weight(self.projection_weight)
        )
        projection_laid_out = None if projection is None else lay_out(projection)
        stretch = torch.full_like(self.bias, 0.5)
        stretch[2 * cell.shape[1] : 3 * cell.shape[1]] = 1.0
        outputs, final_hidden, final_cell = [], [], []
        start = 0
        next_sizes = [*step_sizes[1:], 0]
        for size, next_size in zip(step_sizes, next_sizes, strict=True):
            # Rows past `size` only fill up a block; they belong to no sentence and are not used.
            num_rows = round_up(size)
            gates = multiply(
                hidden[:num_rows],
                state_weight,
                gates_of_input[start : start + num_rows],
                num_outputs=len(self.bias),
                laid_out=state_laid_out,
            )
            hidden, cell = self._update(gates, cell[:num_rows], stretch)
            if projection is not None:
                hidden = multiply(
                    hidden,
                    projection,
                    num_outputs=self.state_weight.shape[1],
                    laid_out=projection_laid_out,
                )
                if self.output_clip is not None:
                    hidden = hidden.clamp(-self.output_clip, self.output_clip)
            outputs.append(hidden[:size])
            final_hidden.append(hidden[next_size:size])
            final_cell.append(cell[next_size:size])
            start += size
        return (
            torch.cat(outputs),
            torch.cat(final_hidden[::-1]),
            torch.cat(final_cell[::-1]),
        )

    def full_bias(self, bias: Tensor | None = None) -> Tensor:
        """Return a bias, by default its own, with the forget bias added to the forget gates."""
        bias = self.bias if bias is None else bias
        forget_bias = torch.zeros_like(bias)
        cell_dim = len(bias) // 4
        forget_bias[cell_dim : 2 * cell_dim] = self.forget_bias
        return bias + forget_bias

    def kernel_weights(self) -> LayerWeights:
        """Return the weights as the native kernels take them."""
        return LayerWeights(
            input_weight=self.input_weight,
            state_weight=self.state_weight,
            bias=self.full_bias(),
            projection_weight=self.projection_weight,
            cell_clip=self.cell_clip,
            output_clip=self.output_clip,
        )

    def _gates_of_input(self, x: Tensor) -> Tensor:
        """Return the input's part of the gates at all steps, and extra rows for the last block."""
        rows = extend_rows(x, round_up(len(x)) + round_up(1))
        weight = extend_weight(self.input_weight)
        return multiply(rows, weight, self.full_bias(), num_outputs=len(self.bias))

    def _update(self, gates: Tensor, cell: Tensor, stretch: Tensor) -> tuple[Tensor, Tensor]:
        """Return the (rows, C) gated output and updated cells, from (rows, 4C) gates."""
        # One tanh for all gates: sigmoid(x) is tanh(x / 2) / 2 + 1/2, and the candidate is a tanh.
        gates = torch.tanh(gates * stretch) * stretch + (1 - stretch)
        write, keep, candidate, show = gates.chunk(4, dim=1)
        cell = keep * cell + write * candidate
        if self.cell_clip is not None:
            cell = cell.clamp(-self.cell_clip, self.cell_clip)
        return show * torch.tanh(cell), cell


@dataclass(frozen=True, kw_only=True, slots=True)
class UnreadLayer:
    """The weights of a layer that has none yet, as kernels take them: read when asked for, once."""

    lstm: ProjectedLSTM
    take: Callable[[str], Tensor]  # by the name in the layer

    @property
    def input_weight(self) -> Tensor:
        """See `LayerWeights`, as for all others."""
        return self.take("input_weight")

    @property
    def state_weight(self) -> Tensor:
        """The weights of the last output."""
        return self.take("state_weight")

    @property
    def bias(self) -> Tensor:
        """The bias of the gates."""
        return self.lstm.full_bias(self.take("bias"))

    @property
    def projection_weight(self) -> Tensor | None:
        """The weights of the projection."""
        return None if self.lstm.projection_weight is None else self.take("projection_weight")

    @property
    def cell_clip(self) -> float | None:
        """The bound of cells."""
        return self.lstm.cell_clip

    @property
    def output_clip(self) -> float | None:
        """The bound of outputs."""
        return self.lstm.output_clip

    def read(self) -> LayerWeights:
        """Return all weights at once."""
        return LayerWeights(
            input_weight=self.input_weight,
            state_weight=self.state_weight,
            bias=self.bias,
            projection_weight=self.projection_weight,
            cell_clip=self.cell_clip,
            output_clip=self.output_clip,
        )
