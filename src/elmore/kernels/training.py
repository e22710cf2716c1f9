"""One LSTM layer with gradients, both directions in parallel.

The backward pass computes the gradients of the gates step by step. The gradients of weights and
inputs are then one matrix product each over all steps. Both directions share one autograd function
because autograd runs the functions of a CPU graph one after another.

Shapes: N packed tokens, B sentences, D input, C cells, P output.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmore.config import Precision
from elmore.kernels import interface
from elmore.kernels.library import Kernel
from elmore.kernels.packed import CODES, PackedMatrix, check, check_floats
from elmore.kernels.products import find_kernel_to_multiply, multiply
from elmore.kernels.reading import LayerWeights, PackedLayer
from elmore.kernels.scratch import Take, borrow
from elmore.kernels.threads import run_together


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerOutput:
    """The output of one direction of a layer."""

    outputs: Tensor  # (N, P) packed
    hidden: Tensor  # (B, P) packed order
    cell: Tensor  # (B, C) packed order


def train_layer(
    kernel: Kernel,
    weights: Sequence[LayerWeights],
    inputs: Sequence[Tensor],
    step_sizes: Sequence[int],
    hidden: Sequence[Tensor],
    cell: Sequence[Tensor],
    *,
    precision: Precision = Precision.F32,
) -> list[LayerOutput]:
    """Run a layer over packed (N, D) inputs from states (B, P) and (B, C), all per direction.

    `precision` is that of the factors of matrix products. Sums, states and results are f32.
    """
    arguments: list[Tensor | None] = []
    num_tokens, num_sentences = sum(step_sizes), step_sizes[0] if step_sizes else 0
    for direction, layer in enumerate(weights):
        output_dim, cell_dim = layer.state_weight.shape[1], len(layer.bias) // 4
        check_floats("inputs", inputs[direction], (num_tokens, layer.input_weight.shape[1]))
        check_floats("hidden states", hidden[direction], (num_sentences, output_dim))
        check_floats("cells", cell[direction], (num_sentences, cell_dim))
        arguments += [inputs[direction], hidden[direction], cell[direction]]
        arguments += [layer.input_weight, layer.state_weight, layer.bias, layer.projection_weight]
    clips = [(layer.cell_clip, layer.output_clip) for layer in weights]
    results = _TrainLayer.apply(  # type: ignore[no-untyped-call]
        kernel, precision, clips, np.array(step_sizes, np.int32), *arguments
    )
    return [
        LayerOutput(outputs=outputs, hidden=last_hidden, cell=last_cell)
        for outputs, last_hidden, last_cell in _split_in_threes(results)
    ]


def _split_in_threes(tensors: Sequence[Tensor]) -> list[Sequence[Tensor]]:
    return [tensors[start : start + 3] for start in range(0, len(tensors), 3)]


class _TrainLayer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        kernel: Kernel,
        precision: Precision,
        clips: Sequence[tuple[float | None, float | None]],
        step_sizes: np.ndarray[Any, np.dtype[np.int32]],
        *arguments: Tensor | None,
    ) -> tuple[Tensor, ...]:
        directions = [
            _Direction(kernel, precision, clip, step_sizes, *part)
            for clip, part in zip(clips, _split_in_sevens(arguments), strict=True)
        ]
        run_together(*(direction.run_forward for direction in directions))
        ctx.kernel, ctx.precision = kernel, precision
        ctx.clips, ctx.step_sizes = clips, step_sizes
        saved = [direction.saved() for direction in directions]
        ctx.save_for_backward(*arguments, *(tensor for tensors in saved for tensor in tensors))
        ctx.num_arguments = len(arguments)
        return tuple(tensor for direction in directions for tensor in direction.results())

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        arguments = ctx.saved_tensors[: ctx.num_arguments]
        saved = ctx.saved_tensors[ctx.num_arguments :]
        num_saved = len(saved) // len(ctx.clips)
        directions = []
        for number, (clip, part) in enumerate(
            zip(ctx.clips, _split_in_sevens(arguments), strict=True)
        ):
            direction = _Direction(ctx.kernel, ctx.precision, clip, ctx.step_sizes, *part)
            direction.restore(*saved[number * num_saved : (number + 1) * num_saved])
            direction.set_result_gradients(*gradients[3 * number : 3 * number + 3])
            directions.append(direction)
        run_together(*(direction.run_backward for direction in directions))
        # These products are large, so each one uses all threads.
        needed = _split_in_sevens(ctx.needs_input_grad[4:])
        results = [
            gradient
            for direction, is_needed in zip(directions, needed, strict=True)
            for gradient in direction.gradients(is_needed)
        ]
        return None, None, None, None, *results


def _split_in_sevens(items: Sequence[Any]) -> list[Sequence[Any]]:
    return [items[start : start + 7] for start in range(0, len(items), 7)]


class _Direction:
    """Forward and backward pass of one direction of a layer."""

    def __init__(
        self,
        kernel: Kernel,
        precision: Precision,
        clips: tuple[float | None, float | None],
        step_sizes: np.ndarray[Any, np.dtype[np.int32]],
        inputs: Tensor,
        hidden: Tensor,
        cell: Tensor,
        input_weight: Tensor,
        state_weight: Tensor,
        bias: Tensor,
        projection_weight: Tensor | None,
    ) -> None:
        self.kernel = kernel
        self.precision = precision
        self.step_sizes = step_sizes
        self.inputs = inputs.contiguous()
        self.first_hidden = hidden.contiguous()
        self.first_cell = cell.contiguous()
        self.weights = LayerWeights(
            input_weight=input_weight,
            state_weight=state_weight,
            bias=bias,
            projection_weight=projection_weight,
            cell_clip=clips[0],
            output_clip=clips[1],
        )
        self.num_tokens = len(inputs)
        self.num_sentences, self.output_dim = hidden.shape
        self.cell_dim = cell.shape[1]

    def run_forward(self) -> None:
        """Run the layer and save what the backward pass needs."""
        new = self.inputs.new_empty
        self.outputs = new((self.num_tokens, self.output_dim))
        self.hidden = torch.empty_like(self.first_hidden)
        self.cell = torch.empty_like(self.first_cell)
        self.gates = new((self.num_tokens, 4 * self.cell_dim))
        self.cells = new((self.num_tokens, self.cell_dim))
        self.shown = new((self.num_tokens, self.cell_dim))
        self.narrow = (
            self.outputs
            if self.weights.projection_weight is None
            else new((self.num_tokens, self.output_dim))
        )
        with borrow() as take:
            packed = PackedLayer(self.kernel, self.weights, precision=self.precision, memory=take)
            check(
                self.kernel.functions.elmore_train(
                    packed.pointer(),
                    self.step_sizes.ctypes.data,
                    len(self.step_sizes),
                    self.inputs.data_ptr(),
                    self.first_hidden.data_ptr(),
                    self.first_cell.data_ptr(),
                    self.hidden.data_ptr(),
                    self.cell.data_ptr(),
                    self.outputs.data_ptr(),
                    self._pointers(),
                )
            )

    def results(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.outputs, self.hidden, self.cell

    def saved(self) -> tuple[Tensor, ...]:
        return self.outputs, self.gates, self.cells, self.shown, self.narrow

    def restore(
        self, outputs: Tensor, gates: Tensor, cells: Tensor, shown: Tensor, narrow: Tensor
    ) -> None:
        self.outputs, self.gates, self.cells = outputs, gates, cells
        self.shown, self.narrow = shown, narrow

    def set_result_gradients(self, outputs: Tensor, hidden: Tensor, cell: Tensor) -> None:
        self.result_gradients = [outputs.contiguous(), hidden.contiguous(), cell.contiguous()]

    def run_backward(self) -> None:
        """Compute the gradients of the gates, the projection and the first state."""
        self.gate_gradient = torch.empty_like(self.gates)
        self.narrow_gradient = torch.empty_like(self.outputs)
        self.hidden_gradient = torch.empty_like(self.first_hidden)
        self.cell_gradient = torch.empty_like(self.first_cell)
        with borrow() as take:
            self._run_backward(take)

    def _run_backward(self, take: Take) -> None:
        weights = self.weights
        pack = partial(PackedMatrix, self.kernel, precision=self.precision, memory=take)
        state = pack(weights.state_weight.t())
        projection = (
            None if weights.projection_weight is None else pack(weights.projection_weight.t())
        )
        layer = interface.BackwardLayer(
            interface.Matrix() if projection is None else projection.pointer(),
            state.pointer(),
            np.inf if weights.cell_clip is None else weights.cell_clip,
            np.inf if weights.output_clip is None else weights.output_clip,
            self.cell_dim,
            self.output_dim,
            CODES[self.precision],
        )
        tensors = [
            self.gate_gradient,
            self.narrow_gradient,
            self.hidden_gradient,
            self.cell_gradient,
        ]
        gradients = interface.Gradients(
            *(tensor.data_ptr() for tensor in [*self.result_gradients, *tensors])
        )
        check(
            self.kernel.functions.elmore_train_back(
                layer,
                self.step_sizes.ctypes.data,
                len(self.step_sizes),
                self._pointers(),
                self.first_cell.data_ptr(),
                gradients,
            )
        )

    def gradients(self, is_needed: Sequence[bool]) -> list[Tensor | None]:
        """Return the gradients of the arguments, in order."""
        weights = self.weights
        gates = self.gate_gradient
        multiply = self._multiply
        makers: list[Callable[[], Tensor]] = [
            lambda: multiply(gates, weights.input_weight),
            lambda: self.hidden_gradient,
            lambda: self.cell_gradient,
            lambda: multiply(gates.t(), self.inputs),
            lambda: multiply(gates.t(), self._outputs_before()),
            lambda: gates.sum(dim=0),
            lambda: multiply(self.narrow_gradient.t(), self.shown),
        ]
        if all(is_needed[3:6]) and find_kernel_to_multiply(gates.t(), self.inputs) is not None:
            in_order = self._weight_gradients()
            makers[3:6] = [partial(next, in_order)] * 3
        return [make() if needed else None for make, needed in zip(makers, is_needed, strict=True)]

    def _weight_gradients(self) -> Iterator[Tensor]:
        """Yield the gradients of the input weight, the state weight and the bias.

        They are one product, so that the gradient of the gates, the largest factor, is packed once.
        """
        parts = [self.inputs, self._outputs_before(), self.inputs.new_ones(self.num_tokens, 1)]
        # Copying the transpose of the whole is much faster than concatenating transposes.
        transposed = torch.cat(parts, dim=1).t().contiguous()
        found = self._multiply(transposed, self.gate_gradient)
        of_inputs, of_states, of_bias = found.split([part.shape[1] for part in parts])
        yield of_inputs.t().contiguous()
        yield of_states.t().contiguous()
        yield of_bias[0].clone()  # a view would keep the whole product in memory

    def _multiply(self, x: Tensor, y: Tensor) -> Tensor:
        return multiply(x, y, precision=self.precision)

    def _outputs_before(self) -> Tensor:
        """Return the (N, P) hidden states before each step: each sentence's previous outputs."""
        parts = [self.first_hidden]
        start = 0
        for size, next_size in zip(self.step_sizes, self.step_sizes[1:], strict=False):
            parts.append(self.outputs[start : start + next_size])
            start += int(size)
        return torch.cat(parts)

    def _pointers(self) -> interface.Saved:
        tensors = [self.gates, self.cells, self.shown, self.narrow]
        return interface.Saved(*(tensor.data_ptr() for tensor in tensors))
