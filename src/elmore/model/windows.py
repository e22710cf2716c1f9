"""Read windows of text that goes on: each direction has rows of its own order, and a state.

A window is T symbols of each of B rows. The backward LM reads every sentence from its end, so where
a window cuts a sentence the two directions see different parts of it; they share the token vectors.

Shapes: U distinct tokens, T steps, B rows, D one direction, C cells, L layers.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from elmore.kernels.training import LayerOutput, train_layer
from elmore.model.bilm import BiLM
from elmore.model.packed_reader import weights_of
from elmore.model.state import BiLMState
from elmore.text.batches import TokenIds

# Gives the (T * B, D) factors that drop numbers of one direction before layer `depth`.
DrawMask = Callable[[int, int], Tensor]


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowOutput:
    """The top layer of each direction, in the order in which it read, and where the rows stand."""

    outputs: Tensor  # (2, T * B, D), step after step
    state: BiLMState


class WindowReader(nn.Module):
    """A biLM that reads windows; what is trained, and what processes that train together share."""

    def __init__(self, bilm: BiLM, *, uses_kernel: bool = True) -> None:
        super().__init__()
        self.bilm = bilm
        self.uses_kernel = uses_kernel

    def forward(
        self,
        tokens: TokenIds,
        positions: Tensor,
        state: BiLMState,
        draw_mask: DrawMask | None = None,
    ) -> WindowOutput:
        """Read (2, T, B) places among (U,) tokens, forward LM first, on from `state`.

        Numbers are dropped where bilm-tf drops them: on the way into each layer, the residual
        connection included, and on the way out of the last.
        """
        num_steps, num_rows = positions.shape[1:]
        vectors = self.bilm.token_encoder(tokens.char_ids, tokens.word_ids)
        inputs = [vectors[places.flatten()] for places in positions]
        hidden, cell = [], []
        for depth in range(len(self.bilm.forward_lm)):
            inputs = _drop(inputs, depth, draw_mask)
            layer = self._read_layer(inputs, depth, [num_rows] * num_steps, state)
            has_residual = self.bilm.has_residuals and depth > 0
            inputs = [
                direction.outputs + x if has_residual else direction.outputs
                for direction, x in zip(layer, inputs, strict=True)
            ]
            hidden.append(torch.stack([direction.hidden for direction in layer]))
            cell.append(torch.stack([direction.cell for direction in layer]))
        outputs = _drop(inputs, len(self.bilm.forward_lm), draw_mask)
        final = BiLMState(hidden=torch.stack(hidden, dim=1), cell=torch.stack(cell, dim=1))
        return WindowOutput(outputs=torch.stack(outputs), state=final.detach())

    def _read_layer(
        self, inputs: list[Tensor], depth: int, step_sizes: list[int], state: BiLMState
    ) -> list[LayerOutput]:
        lstms = [direction[depth] for direction in self.bilm.directions]
        hidden, cell = state.hidden[:, depth].unbind(), state.cell[:, depth].unbind()
        kernel = self.bilm.find_kernel() if self.uses_kernel else None
        if kernel is not None and all(x.dtype == torch.float32 for x in inputs):
            weights = [weights_of(lstm) for lstm in lstms]
            return train_layer(kernel, weights, inputs, step_sizes, hidden, cell)
        results = [
            lstm(x, step_sizes, hidden[number], cell[number])
            for number, (lstm, x) in enumerate(zip(lstms, inputs, strict=True))
        ]
        return [
            LayerOutput(outputs=outputs, hidden=last_hidden, cell=last_cell)
            for outputs, last_hidden, last_cell in results
        ]


def _drop(inputs: list[Tensor], depth: int, draw_mask: DrawMask | None) -> list[Tensor]:
    if draw_mask is None:
        return inputs
    return [x * draw_mask(direction, depth).to(x) for direction, x in enumerate(inputs)]
