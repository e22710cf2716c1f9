"""The loop over the layers of both directions; the function that runs one layer is passed in.

Shapes: L LSTM layers, N packed tokens, B sentences, D one direction, C cells.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from elmore.kernels.training import LayerOutput
from elmore.model.state import BiLMState

# Runs layer `depth` of both directions on their (N, D) inputs.
ReadLayer = Callable[[int, Sequence[Tensor]], Sequence[LayerOutput]]
# Changes the inputs of both directions before layer `depth`.
BeforeLayer = Callable[[Sequence[Tensor], int], Sequence[Tensor]]


def run_layers(
    inputs: Sequence[Tensor],
    read_layer: ReadLayer,
    *,
    num_layers: int,
    has_residuals: bool,
    before_layer: BeforeLayer = lambda inputs, _depth: inputs,
) -> tuple[list[Sequence[Tensor]], BiLMState]:
    """Return the (N, D) outputs of each layer in both directions, and the final state.

    With residuals, layers from the second on add their input to their output. The sum goes to the
    next layer, but is not part of the layer's own state.
    """
    outputs: list[Sequence[Tensor]] = []
    results: list[Sequence[LayerOutput]] = []
    for depth in range(num_layers):
        inputs = before_layer(inputs, depth)
        directions = read_layer(depth, inputs)
        has_residual = has_residuals and depth > 0
        inputs = [
            direction.outputs + x if has_residual else direction.outputs
            for direction, x in zip(directions, inputs, strict=True)
        ]
        outputs.append(inputs)
        results.append(directions)
    state = BiLMState(
        hidden=_stack([[direction.hidden for direction in layer] for layer in results]),
        cell=_stack([[direction.cell for direction in layer] for layer in results]),
    )
    return outputs, state


def _stack(layers: Sequence[Sequence[Tensor]]) -> Tensor:
    """Stack L layers of two (B, D) directions into (2, L, B, D)."""
    return torch.stack([torch.stack(list(layer)) for layer in layers], dim=1)
