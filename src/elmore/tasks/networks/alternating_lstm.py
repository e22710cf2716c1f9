"""LSTM layers of alternating direction (Zhou and Xu, 2015; He et al., 2017).

Each layer's output is mixed with its input by a highway gate (He et al., section 2.2):

    g = sigmoid(W [x; o] + b)        y = g * o + (1 - g) * V x

Two things differ from He et al., so that a layer is one call of torch's LSTM:

- Their recurrent state is y, and g depends on y of the previous token. Here the state is the LSTM's
  own output o, and g depends on o of the same token.
- They drop elements of y, the same ones for all tokens of a sentence, both on the way up and in the
  recurrence. Here dropout in the recurrence is on the recurrent weights, the same for all tokens of
  a batch (Merity et al., 2018).

Shapes: B sentences, T tokens in the longest, D input, H hidden.
"""

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from elmore.tasks.networks.encoders import (
    SentenceDropout,
    find_reversed_positions,
    make_lstm,
    reverse,
)


class AlternatingLSTM(nn.Module):
    """LSTM layers with highway gates, one direction each; the first reads left to right."""

    def __init__(
        self, *, input_dim: int, hidden_dim: int, num_layers: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.output_dim = hidden_dim
        self.layers = nn.ModuleList(
            HighwayLSTM(
                input_dim=input_dim if number == 0 else hidden_dim,
                hidden_dim=hidden_dim,
                dropout=dropout,
            )
            for number in range(num_layers)
        )

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, H), zero at padding."""
        reversed_positions = find_reversed_positions(lengths, x.shape[1])
        for number, layer in enumerate(self.layers):
            x = layer(x if number == 0 else reverse(x, reversed_positions))
        if len(self.layers) % 2 == 0:
            x = reverse(x, reversed_positions)
        is_padding = torch.arange(x.shape[1], device=x.device) >= lengths[:, None]
        return x.masked_fill(is_padding.unsqueeze(2), 0.0)


class HighwayLSTM(nn.Module):
    """One layer: an LSTM, a linear map around it, and a gate between them for each element."""

    def __init__(self, *, input_dim: int, hidden_dim: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.lstm = make_lstm(input_dim, hidden_dim)
        self.gate = nn.Linear(input_dim + hidden_dim, hidden_dim)
        self.around = nn.Linear(input_dim, hidden_dim, bias=False)
        self.dropout = SentenceDropout(dropout)
        nn.init.xavier_uniform_(self.gate.weight)
        nn.init.zeros_(self.gate.bias)
        nn.init.orthogonal_(self.around.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D), in reading order, to (B, T, H)."""
        output = self._read(x)
        gate = self.gate(torch.cat([x, output], dim=-1)).sigmoid()
        return self.dropout(gate * output + (1 - gate) * self.around(x))

    def _read(self, x: Tensor) -> Tensor:
        if not self.training or not self.dropout.rate:
            return self.lstm(x)[0]
        recurrent = self.lstm.get_parameter("weight_hh_l0")  # (4H, H)
        dropped = {"weight_hh_l0": functional.dropout(recurrent, self.dropout.rate)}
        return functional_call(self.lstm, dropped, (x,))[0]
