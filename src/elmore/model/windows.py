"""Run a biLM over windows of continuous text, carrying the LSTM state from window to window.

A window is T symbols of each of B rows. The backward LM reads every sentence from its end, so if a
window cuts a sentence, the two directions see different parts of it. They share the token vectors.

Shapes: U distinct tokens, T steps, B rows, D one direction, C cells, L layers.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from elmore.config import Precision
from elmore.model.bilm import BiLM
from elmore.model.layers import run_layers
from elmore.model.state import BiLMState
from elmore.text.batches import TokenIds

# Returns the (T * B, D) dropout factors for a direction before layer `depth`.
DrawMask = Callable[[int, int], Tensor]


class WindowReader(nn.Module):
    """A biLM that reads windows: the module that is trained, also in distributed training."""

    def __init__(self, bilm: BiLM, *, precision: Precision = Precision.F32) -> None:
        super().__init__()
        self.bilm = bilm
        self.precision = precision

    def forward(
        self,
        tokens: TokenIds,
        positions: Tensor,
        state: BiLMState,
        draw_mask: DrawMask | None = None,
    ) -> tuple[Tensor, BiLMState]:
        """Run over (2, T, B) indices into (U,) tokens, forward LM first, from `state`.

        Return (2, T * B, D), the top layer of each direction in its own reading order, step after
        step; and the final state.

        Dropout is applied as in bilm-tf: to the input of each layer, including the residual
        connection, and to the output of the last.
        """
        # With a kernel, only the products of the LSTMs are in bf16; torch's autocast has more.
        is_automatic = self.precision is Precision.BF16 and self.bilm.find_kernel() is None
        with torch.autocast(positions.device.type, torch.bfloat16, enabled=is_automatic):
            outputs, final = self._read(tokens, positions, state, draw_mask)
        return (outputs.float() if is_automatic else outputs), final

    def _read(
        self,
        tokens: TokenIds,
        positions: Tensor,
        state: BiLMState,
        draw_mask: DrawMask | None,
    ) -> tuple[Tensor, BiLMState]:
        num_steps, num_rows = positions.shape[1:]
        vectors = self.bilm.encode(tokens)
        num_layers = len(self.bilm.forward_lm)
        outputs, final = run_layers(
            [vectors[indices.flatten()] for indices in positions],
            partial(
                self.bilm.read_layer,
                step_sizes=[num_rows] * num_steps,
                start=state,
                precision=self.precision,
            ),
            num_layers=num_layers,
            has_residuals=self.bilm.has_residuals,
            before_layer=partial(_drop, draw_mask=draw_mask),
        )
        top = _drop(outputs[-1], num_layers, draw_mask=draw_mask)
        return torch.stack(list(top)), final.detach()


def _drop(inputs: Sequence[Tensor], depth: int, *, draw_mask: DrawMask | None) -> Sequence[Tensor]:
    if draw_mask is None:
        return inputs
    return [x * draw_mask(direction, depth).to(x) for direction, x in enumerate(inputs)]
