"""LSTM layers that read to the right and to the left in turn (Zhou and Xu, 2015; He et al., 2017).

Each layer's output is mixed with its input by a highway gate (He et al., section 2.2):

    g = sigmoid(W [x; o] + b)        y = g * o + (1 - g) * V x

Two things differ from He et al., both so that a layer is one call of torch's LSTM. Their cell
remembers y, and g reads y of the token before; here it remembers its own output o, and g reads o of
the same token. Their dropout takes numbers out of y, the same for all tokens of a sentence; so it
does here on the way up, but what a cell remembers is thinned out by dropping recurrent weights, the
same for all tokens of a batch (Merity et al., 2018).

Shapes: B sentences, T tokens of the longest, D input, H hidden.
"""

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from elmore.tasks.networks.encoders import SentenceDropout, find_turned_places, make_lstm, turn


class AlternatingLSTM(nn.Module):
    """Layers with highway gates, the first from left to right; one direction each."""

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
        """Map (B, T, D) to (B, T, H), zero where there is no token."""
        turned = find_turned_places(lengths, x.shape[1])
        for number, layer in enumerate(self.layers):
            x = layer(x if number == 0 else turn(x, turned))
        if len(self.layers) % 2 == 0:
            x = turn(x, turned)
        is_behind = torch.arange(x.shape[1], device=x.device) >= lengths[:, None]
        return x.masked_fill(is_behind.unsqueeze(2), 0.0)


class HighwayLSTM(nn.Module):
    """One layer: an LSTM, the way around it, and a gate that chooses for each number."""

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
        """Map (B, T, D), in the order of reading, to (B, T, H)."""
        output = self._read(x)
        gate = self.gate(torch.cat([x, output], dim=-1)).sigmoid()
        return self.dropout(gate * output + (1 - gate) * self.around(x))

    def _read(self, x: Tensor) -> Tensor:
        if not self.training or not self.dropout.rate:
            return self.lstm(x)[0]
        recurrent = self.lstm.get_parameter("weight_hh_l0")  # (4H, H)
        thinned = {"weight_hh_l0": functional.dropout(recurrent, self.dropout.rate)}
        return functional_call(self.lstm, thinned, (x,))[0]
