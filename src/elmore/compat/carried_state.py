"""The LSTM state between batches, under the names that programs use to reset it.

Shapes: L LSTM layers, B rows, D both directions of one layer, C cells of both.
"""

import torch
from torch import Tensor, nn

from elmore import Elmo


class CarriedState(nn.Module):
    """What programs know as `elmo._elmo_lstm._elmo_lstm`.

    It is a module because programs look for `stateful` ones among the modules of a network.
    """

    def __init__(self, elmo: Elmo) -> None:
        super().__init__()
        self._shared = (elmo,)  # in a tuple, so that its weights are not registered twice

    @property
    def _elmo(self) -> Elmo:
        return self._shared[0]

    @property
    def stateful(self) -> bool:
        """Whether a batch starts from the final state of the one before."""
        return self._elmo.state == "stream"

    @stateful.setter
    def stateful(self, is_stateful: bool) -> None:
        self._elmo.state = "stream" if is_stateful else "reset"

    @property
    def _states(self) -> tuple[Tensor, Tensor] | None:
        """The carried hidden (L, B, D) and cell (L, B, C) state; None before the first batch."""
        state = self._elmo.carried_state
        if state is None:
            return None
        return torch.cat(list(state.hidden), dim=-1), torch.cat(list(state.cell), dim=-1)

    @_states.setter
    def _states(self, states: tuple[Tensor, Tensor] | None) -> None:
        if states is None:
            self._elmo.carried_state = None
        else:
            hidden, cell = (torch.stack(state.chunk(2, dim=-1)) for state in states)
            self._elmo.carried_state = (hidden, cell)

    def reset_states(self, mask: Tensor | None = None) -> None:
        """Forget the state of all rows, or of those where the (B,) `mask` is 1."""
        self._elmo.reset_state(mask)
