"""Read windows of text that goes on: each direction has rows of its own order, and a state.

A window is T symbols of each of B rows. The backward LM reads every sentence from its end, so where
a window cuts a sentence the two directions see different parts of it; they share the token vectors.

Shapes: U distinct tokens, T steps, B rows, D one direction, C cells, L layers.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from elmore.model.bilm import BiLM
from elmore.model.layers import run_layers
from elmore.model.state import BiLMState
from elmore.text.batches import TokenIds

# Gives the (T * B, D) factors that drop numbers of one direction before layer `depth`.
DrawMask = Callable[[int, int], Tensor]


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
    ) -> tuple[Tensor, BiLMState]:
        """Read (2, T, B) places among (U,) tokens, forward LM first, from `state`.

        Return (2, T * B, D), the top layer of each direction in the order in which it read, step
        after step; and the state after it.

        Numbers are dropped where bilm-tf drops them: on the way into each layer, the residual
        connection included, and on the way out of the last.
        """
        num_steps, num_rows = positions.shape[1:]
        vectors = self.bilm.encode(tokens)
        num_layers = len(self.bilm.forward_lm)
        outputs, final = run_layers(
            [vectors[places.flatten()] for places in positions],
            partial(
                self.bilm.read_layer,
                step_sizes=[num_rows] * num_steps,
                start=state,
                uses_kernel=self.uses_kernel,
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
